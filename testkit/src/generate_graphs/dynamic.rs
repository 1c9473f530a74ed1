//! Tensors of dynamic sizes in random graphs: declared with `?`, sliced to data-dependent sizes, or grown in a loop.
//!
//! Each extent has an SSA name and an upper bound, so that tensors stay small. Two extents count as equal only where they
//! are the same SSA value or the same number.

use super::{Bounded, Graph, MAX_ELEMENTS};
use crate::host_tensor::Dtype;
use crate::text::{Input, Value, list};

/// One dimension of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Extent {
    /// A number.
    Known(usize),
    /// An `index` value that is at least one and at most the number.
    Computed(String, usize),
}

impl Extent {
    fn most(&self) -> usize {
        match self {
            Self::Known(extent) | Self::Computed(_, extent) => *extent,
        }
    }
    fn name(&self) -> Option<&str> {
        if let Self::Computed(name, _) = self { Some(name) } else { None }
    }
}

/// An f32 tensor with extents that are computed.
#[derive(Clone, Debug)]
pub(super) struct Sized {
    pub name: String,
    dims: Vec<Extent>,
    /// Largest magnitude of an element.
    bound: f64,
    /// Whether it may be a part of another tensor.
    pub is_part: bool,
}

impl Sized {
    pub fn ty(&self) -> String {
        type_of(&self.dims)
    }
    fn most(&self) -> usize {
        self.dims.iter().map(Extent::most).product()
    }
}

fn type_of(dims: &[Extent]) -> String {
    let dim = |d: &Extent| if let Extent::Known(n) = d { format!("{n}x") } else { "?x".to_owned() };
    format!("tensor<{}f32>", dims.iter().map(dim).collect::<String>())
}

/// Extents in lists of offsets, sizes and shapes.
fn names_of(dims: &[Extent]) -> String {
    let name = |d: &Extent| d.name().map_or_else(|| d.most().to_string(), str::to_owned);
    dims.iter().map(name).collect::<Vec<_>>().join(", ")
}

impl Graph {
    /// An op on tensors of dynamic sizes.
    pub(super) fn sized_op(&mut self) {
        match self.rng.below(14) {
            0 => drop(self.sized_input()),
            1 | 2 => drop(self.cut()),
            3 | 4 => self.sized_unary(),
            5 => self.sized_binary(),
            6 => self.sized_reduce(),
            7 => self.sized_transpose(),
            8 => self.sized_cut(),
            9 => self.paste(),
            10 => self.sized_product(),
            11 if self.features.growing => self.grow(),
            12 if self.features.collapsing => self.sized_collapse(),
            _ => self.sized_control(),
        }
    }

    fn pick_sized(&mut self) -> Sized {
        if self.sized.is_empty() {
            return if self.rng.below(2) == 0 { self.sized_input() } else { self.cut() };
        }
        let late = self.sized.len().saturating_sub(2);
        let from = if self.rng.below(2) == 0 { late } else { 0 };
        self.rng.pick(&self.sized[from..]).clone()
    }
    fn push_sized(&mut self, name: String, dims: Vec<Extent>, bound: f64) -> Sized {
        let mut made = Sized { name, dims, bound, is_part: false };
        if bound > super::LARGEST {
            made.name = self.sized_pointwise(
                &made.dims.clone(),
                &[&made],
                &format!("%k = arith.constant {:.12} : f32; %s = arith.mulf %a, %k : f32", 1.0 / bound),
            );
            made.bound = 1.0;
        }
        self.sized.push(made.clone());
        made
    }
    /// As [`Graph::push_sized`], for a possible part of another tensor.
    fn push_part(&mut self, name: String, dims: Vec<Extent>, bound: f64) -> Sized {
        let made = self.push_sized(name, dims, bound);
        if let Some(last) = self.sized.last_mut() {
            last.is_part = true;
        }
        made
    }
    fn dim_of(&mut self, name: &str, ty: &str, dim: usize, most: usize) -> Extent {
        let number = self.text.index(dim);
        let extent = self.text.scalar_op(Dtype::Index, &format!("tensor.dim {name}, {} : {ty}", number.name));
        Extent::Computed(extent.name, most)
    }
    fn sized_empty(&mut self, dims: &[Extent]) -> String {
        let sizes: Vec<_> = dims.iter().filter_map(Extent::name).collect();
        let text = format!("tensor.empty({}) : {}", sizes.join(", "), type_of(dims));
        self.text.op(Dtype::F32, &[], &text).name
    }
    /// A generic over all dimensions; the operands have all of them.
    fn sized_pointwise(&mut self, dims: &[Extent], ins: &[&Sized], body: &str) -> String {
        let all: Vec<_> = (0..dims.len()).map(|d| format!("d{d}")).collect();
        let maps = vec![all.join(", "); ins.len()];
        let ins: Vec<_> = ins.iter().zip(&maps).map(|(v, m)| (*v, m.as_str())).collect();
        let out = self.sized_empty(dims);
        self.sized_generic(&all.join(" "), &ins, (&out, dims, &all.join(", ")), body)
    }
    /// As [`crate::text::Program::generic`].
    fn sized_generic(
        &mut self,
        loops: &str,
        ins: &[(&Sized, &str)],
        out: (&str, &[Extent], &str),
        body: &str,
    ) -> String {
        let names: Vec<_> = loops.split_whitespace().map(|d| d.trim_end_matches('!')).collect();
        let kind = |d: &str| if d.ends_with('!') { "\"reduction\"" } else { "\"parallel\"" };
        let kinds: Vec<_> = loops.split_whitespace().map(kind).collect();
        let map = |results: &str| format!("affine_map<({}) -> ({results})>", names.join(", "));
        let maps: Vec<_> = ins.iter().map(|(_, m)| map(m)).chain([map(out.2)]).collect();
        let arguments: String = ins.iter().zip('a'..).map(|(_, n)| format!("%{n}: f32, ")).collect();
        let lines: String = body.split(';').map(|l| format!("    {}\n", l.trim())).collect();
        let inputs: Vec<_> = ins.iter().map(|(v, _)| v.name.clone()).collect();
        let types: Vec<_> = ins.iter().map(|(v, _)| v.ty()).collect();
        let ty = type_of(out.1);
        let text = format!(
            "linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} ins({} : {}) outs({} : {ty}) {{\n  \
             ^bb0({arguments}%o: f32):\n{lines}    linalg.yield %s : f32\n  }} -> {ty}",
            maps.join(", "),
            kinds.join(", "),
            inputs.join(", "),
            types.join(", "),
            out.0,
        );
        self.text.op(Dtype::F32, &[], &text).name
    }

    /// An input with some `?`.
    fn sized_input(&mut self) -> Sized {
        let rank = 1 + self.rng.below(3) as usize;
        let shape = self.shape(rank);
        let at = self.rng.below(rank as u64) as usize;
        let open: Vec<_> = (0..rank).map(|d| d == at || self.rng.below(2) == 0).collect();
        let declared: String =
            (0..rank).map(|d| if open[d] { "?x".to_owned() } else { format!("{}x", shape[d]) }).collect();
        let ty = format!("tensor<{declared}f32>");
        let name = self.text.input_declared(&ty, Input::new(Dtype::F32, &shape));
        let dims = (0..rank)
            .map(|d| if open[d] { self.dim_of(&name, &ty, d, shape[d]) } else { Extent::Known(shape[d]) })
            .collect();
        self.push_sized(name, dims, 1.0)
    }
    /// A number between one and the extent: an argument, or an element of a tensor.
    fn size_from_data(&mut self, extent: usize) -> Extent {
        let high = extent as f64 + 1.0;
        let name = if self.rng.below(2) == 0 {
            self.text.scalar(Dtype::Index, 1.0, high).name
        } else {
            let sizes = self.text.input_within(Dtype::Int(32), &[3], 1.0, high);
            let at = self.rng.below(3) as usize;
            let at = self.text.index(at);
            let element = format!("tensor.extract {}[{}] : {}", sizes.name, at.name, sizes.ty());
            let element = self.text.scalar_op(Dtype::Int(32), &element);
            self.text.scalar_op(Dtype::Index, &format!("arith.index_cast {} : i32 to index", element.name)).name
        };
        Extent::Computed(name, extent)
    }
    /// A part of a tensor of data-dependent size.
    fn cut(&mut self) -> Sized {
        let x = self.pick_where(&[7, 5], |s| !s.is_empty());
        let shape = x.value.shape().to_vec();
        let at = self.rng.below(shape.len() as u64) as usize;
        let dims: Vec<_> = (0..shape.len())
            .map(|d| match d == at || self.rng.below(3) == 0 {
                true => self.size_from_data(shape[d]),
                false => Extent::Known(shape[d]),
            })
            .collect();
        let ones = vec![1; shape.len()];
        let text = format!(
            "tensor.extract_slice {}[{}] [{}] [{}] : {} to {}",
            x.value.name,
            list(&vec![0; shape.len()]),
            names_of(&dims),
            list(&ones),
            x.value.ty(),
            type_of(&dims)
        );
        let name = self.text.op(Dtype::F32, &[], &text).name;
        self.push_part(name, dims, x.bound)
    }

    fn sized_unary(&mut self) {
        let x = self.pick_sized();
        let (body, bound) = match self.rng.below(3) {
            0 => ("%s = math.tanh %a : f32", 1.0),
            1 => ("%s = arith.negf %a : f32", x.bound),
            _ => ("%s = math.absf %a : f32", x.bound),
        };
        let name = self.sized_pointwise(&x.dims, &[&x], body);
        self.push_sized(name, x.dims, bound);
    }
    fn sized_binary(&mut self) {
        let x = self.pick_sized();
        let alike: Vec<_> = self.sized.iter().filter(|y| y.dims == x.dims).cloned().collect();
        let y = self.rng.pick(&alike).clone();
        let (op, bound) = match self.rng.below(2) {
            0 => ("addf", x.bound + y.bound),
            _ => ("mulf", x.bound * y.bound),
        };
        let name = self.sized_pointwise(&x.dims, &[&x, &y], &format!("%s = arith.{op} %a, %b : f32"));
        self.push_sized(name, x.dims, bound);
    }
    /// Over one dimension, or over all: then it is an ordinary tensor of no dimensions.
    fn sized_reduce(&mut self) {
        let x = self.pick_sized();
        let at = self.rng.below(x.dims.len() as u64 + 1) as usize;
        let all = at == x.dims.len();
        let loop_of = |d: usize| format!("d{d}{}", if all || d == at { "!" } else { "" });
        let loops: Vec<_> = (0..x.dims.len()).map(loop_of).collect();
        let full: Vec<_> = (0..x.dims.len()).map(|d| format!("d{d}")).collect();
        let kept: Vec<_> = (0..x.dims.len()).filter(|d| !all && *d != at).collect();
        let dims: Vec<_> = kept.iter().map(|d| x.dims[*d].clone()).collect();
        let map = kept.iter().map(|d| format!("d{d}")).collect::<Vec<_>>().join(", ");
        let is_sum = self.rng.below(2) == 0;
        let (op, init) = if is_sum { ("addf", "0.0") } else { ("maximumf", "0xFF800000") };
        let init = self.text.constant(Dtype::F32, init);
        let (empty, ty) = (self.sized_empty(&dims), type_of(&dims));
        let fill = format!("linalg.fill ins({} : f32) outs({empty} : {ty}) -> {ty}", init.name);
        let filled = self.text.op(Dtype::F32, &[], &fill).name;
        let body = format!("%s = arith.{op} %o, %a : f32");
        let name = self.sized_generic(&loops.join(" "), &[(&x, &full.join(", "))], (&filled, &dims, &map), &body);
        let bound = if is_sum { x.bound * x.most() as f64 } else { x.bound };
        self.push_known(name, dims, bound);
    }
    /// A tensor whose extents are all static is an ordinary one.
    fn push_known(&mut self, name: String, dims: Vec<Extent>, bound: f64) {
        if dims.iter().any(|d| d.name().is_some()) {
            self.push_sized(name, dims, bound);
        } else {
            let shape = dims.iter().map(Extent::most).collect();
            self.push(Value { name, dtype: Dtype::F32, dims: Some(shape) }, bound);
        }
    }
    fn sized_transpose(&mut self) {
        let x = self.pick_sized();
        let rank = x.dims.len();
        if rank == 0 {
            return self.sized_unary();
        }
        let order: Vec<_> = (0..rank).map(|d| (d + 1) % rank).collect();
        let dims: Vec<_> = order.iter().map(|d| x.dims[*d].clone()).collect();
        let out = self.sized_empty(&dims);
        let text = format!(
            "linalg.transpose ins({} : {}) outs({out} : {}) permutation = [{}]",
            x.name,
            x.ty(),
            type_of(&dims),
            list(&order)
        );
        let name = self.text.op(Dtype::F32, &[], &text).name;
        self.push_sized(name, dims, x.bound);
    }
    /// The upper half of a dimension, up to its end.
    fn sized_cut(&mut self) {
        let x = self.pick_sized();
        let open: Vec<_> = (0..x.dims.len()).filter(|d| x.dims[*d].name().is_some()).collect();
        // A reduction may have removed the dynamic sizes.
        if open.is_empty() {
            return;
        }
        let at = *self.rng.pick(&open);
        let whole = x.dims[at].name().unwrap_or_default().to_owned();
        let two = self.text.index(2);
        let half = self.text.scalar_op(Dtype::Index, &format!("arith.ceildivui {whole}, {} : index", two.name)).name;
        let rest = self.text.scalar_op(Dtype::Index, &format!("arith.subi {whole}, {half} : index")).name;
        let mut offsets = vec!["0".to_owned(); x.dims.len()];
        offsets[at] = rest;
        let mut dims = x.dims.clone();
        dims[at] = Extent::Computed(half, x.dims[at].most().div_ceil(2));
        let text = format!(
            "tensor.extract_slice {}[{}] [{}] [{}] : {} to {}",
            x.name,
            offsets.join(", "),
            names_of(&dims),
            list(&vec![1; dims.len()]),
            x.ty(),
            type_of(&dims)
        );
        let name = self.text.op(Dtype::F32, &[], &text).name;
        self.push_part(name, dims, x.bound);
    }
    /// Inserts into a corner of an ordinary tensor, which stays one.
    fn paste(&mut self) {
        let x = self.pick_sized();
        let most: Vec<_> = x.dims.iter().map(Extent::most).collect();
        let fits = |s: &[usize]| s.len() == most.len() && s.iter().zip(&most).all(|(extent, most)| extent >= most);
        let into = self.pick_where(&most, fits);
        let text = format!(
            "tensor.insert_slice {} into {}[{}] [{}] [{}] : {} into {}",
            x.name,
            into.value.name,
            list(&vec![0; most.len()]),
            names_of(&x.dims),
            list(&vec![1; most.len()]),
            x.ty(),
            into.value.ty()
        );
        let made = self.text.op(Dtype::F32, into.value.shape(), &text);
        self.push(made, into.bound.max(x.bound));
    }
    /// A product with its own transpose, for which any two extents will do.
    fn sized_product(&mut self) {
        let fitting: Vec<_> = self.sized.iter().filter(|x| x.dims.len() == 2).cloned().collect();
        if fitting.is_empty() {
            return self.sized_unary();
        }
        let x = self.rng.pick(&fitting).clone();
        let dims = vec![x.dims[0].clone(), x.dims[0].clone()];
        if dims.iter().map(Extent::most).product::<usize>() > MAX_ELEMENTS {
            return self.sized_unary();
        }
        let zero = self.text.constant(Dtype::F32, "0.0");
        let (empty, ty) = (self.sized_empty(&dims), type_of(&dims));
        let fill = format!("linalg.fill ins({} : f32) outs({empty} : {ty}) -> {ty}", zero.name);
        let filled = self.text.op(Dtype::F32, &[], &fill).name;
        let body = "%m = arith.mulf %a, %b : f32; %s = arith.addf %o, %m : f32";
        let name = self.sized_generic("m n k!", &[(&x, "m, k"), (&x, "n, k")], (&filled, &dims, "m, n"), body);
        let bound = x.bound * x.bound * x.dims[1].most() as f64;
        self.push_sized(name, dims, bound);
    }
    /// Collapses all dimensions, one of them of a computed size.
    fn sized_collapse(&mut self) {
        let x = self.pick_sized();
        if x.dims.len() < 2 || x.dims.iter().all(|d| d.name().is_none()) {
            return self.sized_unary();
        }
        let all: Vec<_> = (0..x.dims.len()).collect();
        let text = format!("tensor.collapse_shape {} [[{}]] : {} into tensor<?xf32>", x.name, list(&all), x.ty());
        let name = self.text.op(Dtype::F32, &[], &text).name;
        let extent = self.dim_of(&name, "tensor<?xf32>", 0, x.most());
        self.push_part(name, vec![extent], x.bound);
    }

    /// A loop that appends a part to its tensor, which starts with a static size.
    fn grow(&mut self) {
        let x = self.pick_where(&[2, 3], |s| !s.is_empty());
        let shape = x.value.shape().to_vec();
        let times = 1 + self.rng.below(3) as usize;
        let most = shape[0] * (times + 1);
        if self.depth > 1 || most * shape[1..].iter().product::<usize>() > MAX_ELEMENTS {
            return self.sized_unary();
        }
        let tail: String = shape[1..].iter().map(|d| format!("{d}x")).collect();
        let ty = format!("tensor<?x{tail}f32>");
        let begun =
            self.text.op(Dtype::F32, &[], &format!("tensor.cast {} : {} to {ty}", x.value.name, x.value.ty())).name;
        let (from, to, step) = (self.text.index(0), self.text.index(times), self.text.index(1));
        let (result, induction, carried) = (self.text.fresh(), self.text.fresh(), self.text.fresh());
        self.text.raw(&format!(
            "{result} = scf.for {induction} = {} to {} step {} iter_args({carried} = {begun}) -> ({ty}) {{",
            from.name, to.name, step.name
        ));
        let yielded = self.region(|g| {
            let part = g.text.pointwise(Dtype::F32, &[&x.value], "%s = math.tanh %a : f32");
            let text = format!("tensor.concat dim(0) {carried}, {} : ({ty}, {}) -> {ty}", part.name, part.ty());
            g.text.op(Dtype::F32, &[], &text).name
        });
        self.text.raw(&format!("  scf.yield {yielded} : {ty}"));
        self.text.raw("}");
        let extent = self.dim_of(&result, &ty, 0, most);
        let dims = [vec![extent], shape[1..].iter().map(|d| Extent::Known(*d)).collect()].concat();
        self.push_sized(result, dims, x.bound.max(1.0));
    }
    /// A loop that carries a tensor of dynamic size, or a condition that selects one of two.
    fn sized_control(&mut self) {
        let x = self.pick_sized();
        if self.depth > 1 {
            return self.sized_unary();
        }
        let (ty, result) = (x.ty(), self.text.fresh());
        let halve = |g: &mut Self, x: &Sized| {
            g.sized_pointwise(&x.dims, &[x], "%h = arith.constant 0.5 : f32; %s = arith.mulf %a, %h : f32")
        };
        if self.rng.below(2) == 0 {
            let (from, to, step) = (self.text.index(0), self.text.scalar(Dtype::Index, 0.0, 4.0), self.text.index(1));
            let (induction, carried) = (self.text.fresh(), self.text.fresh());
            self.text.raw(&format!(
                "{result} = scf.for {induction} = {} to {} step {} iter_args({carried} = {}) -> ({ty}) {{",
                from.name, to.name, step.name, x.name
            ));
            let inside = Sized { name: carried, ..x.clone() };
            let yielded = self.region(|g| halve(g, &inside));
            self.text.raw(&format!("  scf.yield {yielded} : {ty}"));
        } else {
            let condition = self.text.scalar(Dtype::Int(1), 0.0, 2.0);
            self.text.raw(&format!("{result} = scf.if {} -> ({ty}) {{", condition.name));
            let yielded = self.region(|g| halve(g, &x));
            self.text.raw(&format!("  scf.yield {yielded} : {ty}\n  }} else {{\n  scf.yield {} : {ty}", x.name));
        }
        self.text.raw("}");
        self.push_part(result, x.dims, x.bound);
    }

    /// Casts an ordinary tensor to a type with dynamic sizes.
    pub(super) fn forget_sizes(&mut self, x: &Bounded) {
        let shape = x.value.shape().to_vec();
        let open: String = shape.iter().map(|_| "?x").collect();
        let ty = format!("tensor<{open}f32>");
        let name =
            self.text.op(Dtype::F32, &[], &format!("tensor.cast {} : {} to {ty}", x.value.name, x.value.ty())).name;
        let dims = (0..shape.len()).map(|d| self.dim_of(&name, &ty, d, shape[d])).collect();
        self.push_part(name, dims, x.bound);
    }
}
