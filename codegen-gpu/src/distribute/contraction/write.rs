//! Emits a planned reduction: positions, loop nest, epilogue, stores.

use super::super::body;
use super::super::code::Code;
use super::super::evaluate::{Evaluator, Point};
use super::super::fitted::FittedChoice;
use super::super::model::{Base, Operand, Source, TileOp};
use super::axes::Extent;
use super::axes::Spread;
use super::load::{self, Stream};
use super::nest::Nest;
use super::plan::Plan;
use super::sides::Access;
use super::stage::{self, Fill};
use super::tile::{Place, Spot};
use monopour_ir::{Diagnostics, Value};

/// Writes the kernel.
pub(super) fn write<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    kernel: &FittedChoice,
) -> Result<(), Diagnostics> {
    let linear = code.linear_id(kernel.workgroup_size);
    let (lane, group) = lane_and_group(code, plan, linear);
    let zero = code.c(0);
    let mut coordinates = vec![zero; plan.axes.extents.len()];
    let copies = plan.stages.iter().map(|s| s.as_ref().map(|s| stage::buffer(code, evaluator, s)).transpose());
    let copies = copies.collect::<Result<Vec<_>, _>>()?;
    let who = Who { linear, invocations: kernel.invocations(), lane, group, copies };
    serial(code, evaluator, plan, &who, 0, &mut coordinates)
}

/// The place of an invocation along the columns and along the rows. Where copies are read in vectors, 32 neighbours are 8
/// columns by 4 rows: they read less than as a line, and each vector in one access of the banks.
fn lane_and_group<'c>(code: &mut Code<'c, '_>, plan: &Plan<'c, '_>, linear: Value<'c>) -> (Value<'c>, Value<'c>) {
    let tile = &plan.tile;
    let mut copies = plan.stages.iter().flatten().peekable();
    let is_staged = copies.peek().is_some() && copies.all(|stage| stage.side.access != Access::AlongK);
    let blocked = is_staged && plan.lanes == 4 && tile.threads_n % 8 == 0 && tile.threads_m % 4 == 0;
    let (across, down) = if blocked { (8, 4) } else { (tile.threads_n, tile.threads_m) };
    if tile.threads_m == 1 {
        return (linear, code.c(0));
    }
    let columns = code.c(across);
    let (lane, line) = (code.rem(linear, columns), code.div(linear, columns));
    if !blocked {
        return (lane, line);
    }
    let (rows, blocks) = (code.c(down), code.c(tile.threads_n / across));
    let (group, block) = (code.rem(line, rows), code.div(line, rows));
    let (right, below) = (code.rem(block, blocks), code.div(block, blocks));
    let (right, below) = (code.mul_const(right, across), code.mul_const(below, down));
    (code.add(lane, right), code.add(group, below))
}

/// The invocation, and its workgroup's memory.
struct Who<'c> {
    linear: Value<'c>,
    invocations: i64,
    /// Position along the columns and along the rows.
    lane: Value<'c>,
    group: Value<'c>,
    /// Copies of the inputs.
    copies: Vec<Option<Value<'c>>>,
}

/// One loop per coordinate that is neither rows nor columns.
fn serial<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    who: &Who<'c>,
    depth: usize,
    coordinates: &mut Vec<Value<'c>>,
) -> Result<(), Diagnostics> {
    if let Some(coordinate) = plan.axes.serial.get(depth) {
        let count = plan.axes.extents[*coordinate].value(code);
        return code.repeat(count, |code, i| {
            coordinates[*coordinate] = i;
            serial(code, evaluator, plan, who, depth + 1, coordinates)
        });
    }
    let (row_passes, column_passes) = (code.c(plan.tile.row_passes), code.c(plan.tile.column_passes));
    code.repeat(row_passes, |code, row_pass| {
        code.repeat(column_passes, |code, column_pass| {
            let place = place(code, plan, who, (row_pass, column_pass), coordinates.clone());
            register_tile(code, evaluator, plan, who, &place)
        })
    })
}

fn place<'c>(
    code: &mut Code<'c, '_>,
    plan: &Plan<'c, '_>,
    who: &Who<'c>,
    (row_pass, column_pass): (Value<'c>, Value<'c>),
    coordinates: Vec<Value<'c>>,
) -> Place<'c> {
    let tile = &plan.tile;
    let block = code.mul_const(row_pass, tile.threads_m);
    let block = code.add(block, who.group);
    let first_row = code.mul_const(block, tile.rows);
    let (rows, mut row_guards) = positions(code, plan.rows, plan.rows_exact(), first_row, (tile.rows, 1), 1);
    let row_spreads = spreads(code, plan, (&plan.axes.outer_rows, plan.axes.row), &rows, 1, &mut row_guards);
    let lanes = i64::from(plan.lanes);
    let pass = code.mul_const(column_pass, tile.column_groups * tile.threads_n);
    let first_column = code.add(pass, who.lane);
    let first_column = code.mul_const(first_column, lanes);
    let groups = (tile.column_groups, tile.threads_n * lanes);
    // Extents are multiples of the lanes: a group of columns is in range as a whole or not at all.
    let (columns, mut column_guards) = positions(code, plan.columns, plan.columns_exact(), first_column, groups, lanes);
    let merged = (&plan.axes.outer_columns[..], plan.axes.column);
    let column_spreads = spreads(code, plan, merged, &columns, lanes, &mut column_guards);
    Place {
        linear: who.linear,
        invocations: who.invocations,
        lane: who.lane,
        first_row,
        rows,
        row_guards,
        columns,
        column_guards,
        row_spreads,
        column_spreads,
        coordinates,
    }
}

/// The coordinates of positions along merged ones, whose guards are added; none where nothing is merged.
fn spreads<'c>(
    code: &mut Code<'c, '_>,
    plan: &Plan<'c, '_>,
    (outer, last): (&[usize], Option<usize>),
    positions: &[Spot<'c>],
    width: i64,
    guards: &mut [Option<Value<'c>>],
) -> Vec<Spread<'c>> {
    let Some(last) = last.filter(|_| !outer.is_empty()) else { return vec![] };
    let mut out = vec![];
    for (spot, guard) in positions.iter().zip(guards) {
        let position = code.add_const(spot.at, spot.plus);
        let spread = plan.axes.split(code, (outer, last), position, width);
        *guard = code.both(*guard, spread.guard);
        out.push(spread);
    }
    out
}

/// `count` positions from `first` on, `distance` apart, each of `width` neighbours: clamped, and whether they are in range.
fn positions<'c>(
    code: &mut Code<'c, '_>,
    extent: Extent<'c>,
    exact: bool,
    first: Value<'c>,
    (count, distance): (i64, i64),
    width: i64,
) -> (Vec<Spot<'c>>, Vec<Option<Value<'c>>>) {
    if exact {
        return ((0..count).map(|i| Spot { at: first, plus: i * distance }).collect(), vec![None; count as usize]);
    }
    let extent = extent.value(code);
    let last = code.add_const(extent, -width);
    (0..count)
        .map(|i| {
            let position = code.add_const(first, i * distance);
            let guard = code.less(position, extent);
            (Spot { at: code.min(position, last), plus: 0 }, Some(guard))
        })
        .unzip()
}

fn register_tile<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    who: &Who<'c>,
    place: &Place<'c>,
) -> Result<(), Diagnostics> {
    let mut points = Vec::new();
    for (r, row) in place.rows.iter().enumerate() {
        for (c, column) in place.columns.iter().enumerate() {
            let mut coordinates = place.coordinates.clone();
            let along = [(plan.axes.row, row, place.row_spreads.get(r))];
            let along = along.into_iter().chain([(plan.axes.column, column, place.column_spreads.get(c))]);
            for (coordinate, spot, spread) in along {
                match (coordinate, spread) {
                    (_, Some(spread)) => spread.coordinates.iter().for_each(|(c, at)| coordinates[*c] = *at),
                    (Some(c), None) => coordinates[c] = code.add_const(spot.at, spot.plus),
                    (None, None) => {}
                }
            }
            points.push(Point::new(coordinates, plan.lanes));
        }
    }
    for point in &mut points {
        plan.fused.before.iter().try_for_each(|op| evaluator.evaluate(code, op, point))?;
    }
    let starts = (0..points.len()).map(|i| {
        let guard = place.guard(code, i);
        initial(code, evaluator, plan, &points[i], guard)
    });
    let starts = starts.collect::<Result<Vec<_>, _>>()?;
    let sums = accumulate(code, evaluator, plan, (who, place), &starts)?;
    // Invocations that are clamped into range do not read what another one stores. Elsewhere all is read before anything is
    // stored: a driver that moves no load past a store (llvmpipe) waits for each of them in turn.
    let is_clamped = place.row_guards.iter().chain(&place.column_guards).any(Option::is_some);
    let in_place = is_clamped && writes_what_it_reads(evaluator, plan);
    for (i, point) in points.iter_mut().enumerate() {
        for (output, sums) in plan.fused.op.outputs().iter().zip(&sums) {
            if let Source::Slice(result) = output.source {
                point.held.insert(result, sums[i]);
            }
        }
        for op in plan.fused.after.iter().filter(|_| !in_place) {
            evaluator.evaluate(code, op, point)?;
        }
    }
    let writers = plan.fused.ops();
    for (i, point) in points.iter_mut().enumerate() {
        let guard = place.guard(code, i);
        code.guarded(guard, |code| {
            for op in plan.fused.after.iter().filter(|_| in_place) {
                evaluator.evaluate(code, op, point)?;
            }
            // There are no later groups, so local buffers need no memory.
            evaluator.store(code, &writers, point, |base| matches!(base, Base::Argument(_)))
        })?;
    }
    Ok(())
}

/// Whether the epilogue reads elements from the memory of a buffer that it writes, not from registers.
fn writes_what_it_reads(evaluator: &Evaluator<'_, '_>, plan: &Plan<'_, '_>) -> bool {
    let slices = |op: &TileOp| -> Vec<usize> {
        let of = |o: &Operand| if let Source::Slice(s) = o.source { Some(s) } else { None };
        op.outputs().iter().filter_map(of).collect()
    };
    let base = |s: usize| evaluator.model.slices[s].base;
    let written: Vec<Base> = plan.fused.after.iter().flat_map(|op| slices(op)).map(base).collect();
    let mut held: Vec<usize> = plan.fused.before.iter().chain([&plan.fused.op]).flat_map(|op| slices(op)).collect();
    for op in &plan.fused.after {
        for (_, operand) in op.operands.iter().enumerate().filter(|(i, _)| op.reads(*i)) {
            let Source::Slice(s) = operand.source else { continue };
            if matches!(base(s), Base::Argument(_)) && !held.contains(&s) && written.contains(&base(s)) {
                return true;
            }
        }
        held.extend(slices(op));
    }
    false
}

/// The accumulators' initial values, one per result: what an op before wrote, else loaded. Where `guard` does not hold,
/// another invocation stores what would be loaded.
fn initial<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    point: &Point<'c>,
    guard: Option<Value<'c>>,
) -> Result<Vec<Value<'c>>, Diagnostics> {
    let outer = plan.fused.op.outer.as_ref().expect("invariant: planned");
    let zero = code.c(0);
    let mut loops = vec![zero; plan.fused.op.sizes.len()];
    for (l, c) in outer.iter().zip(&point.coordinates) {
        loops[*l] = *c;
    }
    let mut values = vec![];
    for output in plan.fused.op.outputs() {
        let load = |code: &mut Code<'c, '_>| {
            let value = evaluator.operand(code, plan.fused.op, output, &loops, point)?;
            Ok::<_, Diagnostics>(code.broadcast(value, plan.lanes))
        };
        let loaded = match output.source {
            Source::Slice(slice) if !point.held.contains_key(&slice) => Some(slice),
            _ => None,
        };
        values.push(match guard.zip(loaded) {
            None => load(code)?,
            Some((guard, slice)) => {
                let nothing = code.zero(evaluator.model.slices[slice].element);
                let nothing = code.broadcast(nothing, plan.lanes);
                code.choose(guard, &[nothing], |code| Ok(vec![load(code)?]))?[0]
            }
        });
    }
    Ok(values)
}

/// The sums of each result, per point; `initial` per point.
fn accumulate<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    (who, place): (&Who<'c>, &Place<'c>),
    initial: &[Vec<Value<'c>>],
) -> Result<Vec<Vec<Value<'c>>>, Diagnostics> {
    let all: Vec<usize> = (0..plan.fused.op.outputs().len()).collect();
    let rounds = if plan.in_turn { all.chunks(1) } else { all.chunks(all.len()) };
    let mut sums = vec![];
    for results in rounds {
        let first: Vec<Value> = initial.iter().flat_map(|values| results.iter().map(|r| values[*r])).collect();
        let round = accumulate_results(code, evaluator, plan, (who, place, results), &first)?;
        for i in 0..results.len() {
            sums.push(round.iter().skip(i).step_by(results.len()).copied().collect());
        }
    }
    Ok(sums)
}

/// As [`accumulate`], of some results: per point, in their order.
fn accumulate_results<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    (who, place, results): (&Who<'c>, &Place<'c>, &[usize]),
    initial: &[Value<'c>],
) -> Result<Vec<Value<'c>>, Diagnostics> {
    let choice = &plan.choice;
    let read = body::read_by(plan.fused.op, results);
    let (mut streams, mut fills) = (vec![], vec![]);
    for ((side, stage), copy) in choice.sides.iter().zip(&plan.stages).zip(&who.copies) {
        if !read.contains(&side.operand) {
            streams.push(None);
            fills.push(None);
            continue;
        }
        let source = stage.as_ref().map_or(side, |s| &s.side);
        streams.push(Some(Stream::new(code, evaluator, plan, source, place, *copy)));
        fills.push(stage.as_ref().zip(*copy).map(|(stage, buffer)| {
            let base = load::first(code, evaluator, plan, side, place);
            Fill::new(code, plan, place, (stage, side), (base, buffer))
        }));
    }
    let others = plan.axes.reductions.iter().enumerate().filter(|(r, _)| *r != choice.stepped);
    let others = others.map(|(_, r)| r.extent).collect();
    Nest { evaluator, plan, results: results.to_vec(), streams, fills, others }.write(code, initial)
}
