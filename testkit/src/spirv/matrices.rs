//! Cooperative matrices of subgroups: loads, stores, products.
//!
//! Each lane holds as many elements as the others. Which ones follows from the launch's seed, the use of the matrix and the
//! width of its elements, so that no kernel can rely on a layout; an access of an element is its lane's.
//! An access counts as hardware makes it: in pieces of sixteen bytes, those of eight lines at a time.
//! A product has the exact products of the factors, added in the order of the reduction, each sum rounded.
//!
//! Source: `SPV_KHR_cooperative_matrix`; Vulkan's VUID-RuntimeSpirv-OpCooperativeMatrixLoadKHR-08986 for alignment.
//! Limits: matrices of floats that a subgroup holds, with powers of two of rows and columns.

use spirv::{CooperativeMatrixLayout, CooperativeMatrixUse, Op, StorageClass};

use super::error::{Error, FaultKind};
use super::floats::{decode, encode, fused};
use super::memory::{Accessed, place, place_of, read, write};
use super::reader::Instruction;
use super::shadow::Access;
use super::state::Machine;
use super::types::{Leaf, Matrix, Scalar, Type};
use super::values::{first_lanes, lanes};
use crate::random::Rng;

/// Bytes that lines begin at multiples of, unless they are shorter.
const ALIGNMENT: u64 = 16;

/// A matrix in memory.
struct Lines {
    /// The variable's position, and the pointer's bytes from its beginning.
    variable: usize,
    first: u64,
    /// Bytes from one line to the next.
    pitch: u64,
    /// Whether lines are columns.
    is_by_columns: bool,
}

impl Lines {
    /// The number of lines, and the bytes of one.
    fn extent(&self, matrix: Matrix) -> (u64, u64) {
        let (count, each) =
            if self.is_by_columns { (matrix.columns, matrix.rows) } else { (matrix.rows, matrix.columns) };
        (count.into(), u64::from(each) * u64::from(matrix.scalar.bytes()))
    }

    /// Bytes of an element from the variable's beginning.
    fn offset(&self, matrix: Matrix, element: u32) -> u64 {
        let (row, column) = (u64::from(element / matrix.columns), u64::from(element % matrix.columns));
        let (line, within) = if self.is_by_columns { (column, row) } else { (row, column) };
        self.first + line * self.pitch + within * u64::from(matrix.scalar.bytes())
    }
}

impl Machine<'_> {
    /// Instructions on matrices; false for another one.
    pub fn matrix(&mut self, instruction: &Instruction) -> Result<bool, Error> {
        let access = match instruction.op {
            Op::CooperativeMatrixLoadKHR => Some(Access::Load),
            Op::CooperativeMatrixStoreKHR => Some(Access::Store),
            Op::CooperativeMatrixMulAddKHR => None,
            Op::FConvert if self.is_matrix(instruction.result) => None,
            _ => return Ok(false),
        };
        // Every lane of the subgroup exists and takes part.
        if self.active != first_lanes(self.lanes as u32) {
            let lane = lanes(self.active).next().unwrap_or(0);
            return Err(self.fault(FaultKind::DivergentSubgroup, instruction.op, lane));
        }
        match access {
            Some(access) => self.access_matrix(instruction, access)?,
            None if instruction.op == Op::FConvert => self.convert_matrix(instruction)?,
            None => self.multiply_add(instruction)?,
        }
        Ok(true)
    }

    /// The matrix that an id is.
    fn matrix_of(&self, id: u32) -> Result<Matrix, Error> {
        match self.module.value_type(id, self.word)?.ty {
            Type::Matrix(matrix) => Ok(matrix),
            _ => Err(Error::Malformed { word: self.word, what: "an operand is no matrix" }),
        }
    }

    /// By scalar and lane: the element that the lane holds there, counted along rows.
    fn layout(&mut self, matrix: Matrix) -> Vec<u32> {
        let Matrix { rows, columns, role, scalar } = matrix;
        let (seed, bits) = (self.launch.seed, scalar.bits());
        let layout = self.layouts.entry((role, rows * columns, bits)).or_insert_with(|| {
            let mut elements: Vec<u32> = (0..rows * columns).collect();
            let mut rng = Rng::new(seed ^ u64::from(bits) << 32 ^ u64::from(role) << 16 ^ u64::from(rows * columns));
            for at in (1..elements.len()).rev() {
                elements.swap(at, rng.below(at as u64 + 1) as usize);
            }
            elements
        });
        layout.clone()
    }

    /// A load or a store.
    fn access_matrix(&mut self, instruction: &Instruction, access: Access) -> Result<(), Error> {
        let (op, is_load) = (instruction.op, access == Access::Load);
        let id = if is_load { instruction.result } else { instruction.operand(1)? };
        let matrix = self.matrix_of(id)?;
        let lines = self.lines(instruction, matrix, if is_load { 1 } else { 2 })?;
        let bytes = u64::from(matrix.scalar.bytes());
        let layout = self.layout(matrix);
        let leaf = Leaf { offset: 0, scalar: matrix.scalar };
        let module = self.module;
        let variable = &module.variables[lines.variable];
        for (scalar, elements) in layout.chunks_exact(self.lanes).enumerate() {
            let offsets: Vec<u64> = elements.iter().map(|element| lines.offset(matrix, *element)).collect();
            let accessed = Accessed { variable: lines.variable, offsets, bytes };
            self.check_bounds(&accessed, op)?;
            self.check_races(&accessed, access, op)?;
            if is_load {
                let mut row = vec![0; self.lanes];
                for (lane, offset) in accessed.offsets.iter().enumerate() {
                    let (memory, base) = self.memory(variable, lane);
                    row[lane] = read(memory, base + *offset as usize, leaf);
                }
                self.set_row(id, scalar as u32, &row)?;
            } else {
                let row = self.row(id, scalar as u32)?.to_vec();
                for (lane, offset) in accessed.offsets.iter().enumerate() {
                    let (memory, base) = self.memory_mut(variable, lane);
                    write(memory, base + *offset as usize, leaf, row[lane]);
                }
            }
        }
        self.count_matrix(&lines, matrix, access);
        Ok(())
    }

    /// Where a matrix is; `at` is the position of the operand with its layout.
    fn lines(&self, instruction: &Instruction, matrix: Matrix, at: usize) -> Result<Lines, Error> {
        let layout = self.module.constant(instruction.operand(at)?, self.word)?;
        let layout = CooperativeMatrixLayout::from_u32(layout as u32);
        let is_by_columns = match layout {
            Some(CooperativeMatrixLayout::RowMajorKHR) => false,
            Some(CooperativeMatrixLayout::ColumnMajorKHR) => true,
            _ => return Err(instruction.unsupported()),
        };
        let pointer = self.same_in_all(instruction, instruction.operand(0)?)?;
        let stride = self.same_in_all(instruction, instruction.operand(at + 1)?)?;
        // The stride counts entries of the array, which are numbers or vectors of them.
        let (_, entry) = self.pointee(instruction.operand(0)?)?;
        let count = entry.leaves.len() as u32;
        let is_dense = matches!(count, 1 | 2 | 4) && entry.bytes == count * matrix.scalar.bytes();
        if !is_dense || entry.leaves.iter().any(|leaf| leaf.scalar != matrix.scalar) {
            return Err(instruction.unsupported());
        }
        let (variable, first) = place_of(pointer);
        let pitch = (stride & u64::from(u32::MAX)) * u64::from(entry.bytes);
        let lines = Lines { variable, first, pitch, is_by_columns };
        let class = self.module.variables.get(variable).map(|variable| variable.class);
        if !matches!(class, Some(StorageClass::StorageBuffer | StorageClass::Workgroup)) {
            return Err(instruction.unsupported());
        }
        self.check_alignment(instruction, &lines, lines.extent(matrix).1)?;
        Ok(lines)
    }

    /// The value of an operand that is the same in all lanes.
    fn same_in_all(&self, instruction: &Instruction, id: u32) -> Result<u64, Error> {
        let row = self.row(id, 0)?;
        match row.iter().position(|value| *value != row[0]) {
            None => Ok(row[0]),
            Some(lane) => Err(self.fault(FaultKind::NotUniform, instruction.op, lane)),
        }
    }

    /// Whether lines of so many bytes begin where they may.
    fn check_alignment(&self, instruction: &Instruction, lines: &Lines, bytes: u64) -> Result<(), Error> {
        let alignment = bytes.min(ALIGNMENT);
        let variable = &self.module.variables[lines.variable];
        let base = self.base(variable);
        let starts = [lines.first, lines.first + lines.pitch];
        match starts.into_iter().find(|start| !(base + start).is_multiple_of(alignment)) {
            None => Ok(()),
            Some(offset) => {
                let place = place(variable, lines.variable);
                Err(self.fault(FaultKind::Misaligned { place, offset }, instruction.op, 0))
            }
        }
    }

    /// Counts an access of a whole matrix.
    fn count_matrix(&mut self, lines: &Lines, matrix: Matrix, access: Access) {
        let variable = &self.module.variables[lines.variable];
        let base = self.base(variable);
        let (count, bytes) = lines.extent(matrix);
        let piece = bytes.min(ALIGNMENT);
        let of_line = |at: u64| (0..count).map(move |line| base + lines.first + line * lines.pitch + at * piece);
        let mut addresses: Vec<u64> = (0..bytes / piece).flat_map(of_line).collect();
        let elements = piece / u64::from(matrix.scalar.bytes());
        let counts = &mut self.counts;
        match (variable.class, access) {
            (StorageClass::Workgroup, Access::Load) => counts.shared_loads.count(&addresses, piece, elements),
            (StorageClass::Workgroup, _) => counts.shared_stores.count(&addresses, piece, elements),
            (_, access) => {
                addresses.sort_unstable();
                let traffic = if access == Access::Load { &mut counts.loads } else { &mut counts.stores };
                traffic.count(&addresses, piece);
            }
        }
    }

    /// The product of two matrices, added to a third.
    fn multiply_add(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let operand = |index: usize| instruction.operand(index);
        let ids = [operand(0)?, operand(1)?, operand(2)?, instruction.result];
        let [a, b, c, sum] = ids.map(|id| self.matrix_of(id));
        let (a, b, c, sum) = (a?, b?, c?, sum?);
        use CooperativeMatrixUse as U;
        let of = |matrix: Matrix, role: U, rows: u32, columns: u32| {
            matrix.role == role as u32 && (matrix.rows, matrix.columns) == (rows, columns)
        };
        let (m, n, k) = (c.rows, c.columns, a.columns);
        let fits = of(a, U::MatrixAKHR, m, k) && of(b, U::MatrixBKHR, k, n) && of(c, U::MatrixAccumulatorKHR, m, n);
        if !fits || c != sum {
            return Err(Error::Malformed { word: self.word, what: "the matrices of a product do not fit" });
        }
        let is_plain = instruction.operands.get(3).is_none_or(|flags| *flags == 0);
        let [Scalar::Float(of_a), Scalar::Float(of_b), Scalar::Float(of_c)] = [a.scalar, b.scalar, c.scalar] else {
            return Err(instruction.unsupported());
        };
        if !is_plain || of_a > of_c || of_b > of_c {
            return Err(instruction.unsupported());
        }
        let numbers = |machine: &mut Self, id: u32, matrix: Matrix, bits: u32| {
            let values = machine.elements(id, matrix)?;
            Ok(values.into_iter().map(|value| encode(of_c, decode(bits, value))).collect::<Vec<u64>>())
        };
        let (left, right) = (numbers(self, ids[0], a, of_a)?, numbers(self, ids[1], b, of_b)?);
        let mut sums = self.elements(ids[2], c)?;
        for (at, value) in sums.iter_mut().enumerate() {
            let (row, column) = (at as u32 / n, at as u32 % n);
            for i in 0..k {
                let factors = [left[(row * k + i) as usize], right[(i * n + column) as usize]];
                *value = fused(of_c, [factors[0], factors[1], *value]);
            }
        }
        self.counts.products += u64::from(m) * u64::from(n) * u64::from(k);
        self.set_elements(instruction.result, sum, &sums)
    }

    /// A matrix of other floats, each at its place.
    fn convert_matrix(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let (id, result) = (instruction.operand(0)?, instruction.result);
        let (from, to) = (self.matrix_of(id)?, self.matrix_of(result)?);
        if (from.role, from.rows, from.columns) != (to.role, to.rows, to.columns) {
            return Err(Error::Malformed { word: self.word, what: "a conversion changes more than the elements" });
        }
        let (Scalar::Float(of_from), Scalar::Float(of_to)) = (from.scalar, to.scalar) else {
            return Err(instruction.unsupported());
        };
        let values = self.elements(id, from)?;
        let values: Vec<u64> = values.into_iter().map(|value| encode(of_to, decode(of_from, value))).collect();
        self.set_elements(result, to, &values)
    }

    /// The elements of a matrix, along its rows.
    fn elements(&mut self, id: u32, matrix: Matrix) -> Result<Vec<u64>, Error> {
        let layout = self.layout(matrix);
        let mut out = vec![0; layout.len()];
        for (scalar, elements) in layout.chunks_exact(self.lanes).enumerate() {
            let row = self.row(id, scalar as u32)?;
            elements.iter().zip(row).for_each(|(element, value)| out[*element as usize] = *value);
        }
        Ok(out)
    }

    fn set_elements(&mut self, id: u32, matrix: Matrix, values: &[u64]) -> Result<(), Error> {
        let layout = self.layout(matrix);
        for (scalar, elements) in layout.chunks_exact(self.lanes).enumerate() {
            let row: Vec<u64> = elements.iter().map(|element| values[*element as usize]).collect();
            self.set_row(id, scalar as u32, &row)?;
        }
        Ok(())
    }
}
