// Integers: index and others, overflow flags, exact flags.
func.func @integers(%a: index, %b: index, %i: i32, %j: i32) -> (index, i32) {
  %0 = arith.addi %a, %b overflow<nsw, nuw> : index
  %1 = arith.subi %i, %j overflow<nsw> : i32
  %2 = arith.muli %i, %j : i32
  %3 = arith.divsi %i, %j : i32
  %4 = arith.divsi %i, %j exact : i32
  %5 = arith.divui %i, %j exact : i32
  %6 = arith.remsi %a, %b : index
  %7 = arith.remui %a, %b : index
  %8 = arith.andi %a, %b : index
  %9 = arith.ori %a, %b : index
  %10 = arith.xori %a, %b : index
  %11 = arith.shli %a, %b overflow<nuw> : index
  %12 = arith.shrsi %a, %b exact : index
  %13 = arith.shrui %a, %b : index
  %14 = arith.maxsi %i, %j : i32
  %15 = arith.minsi %a, %b : index
  %16 = arith.maxui %i, %j : i32
  %17 = arith.minui %i, %j : i32
  return %0, %1 : index, i32
}
// -----
// Floats and their flags.
func.func @floats(%f: f32, %g: f32, %d: f64, %e: f64, %h: f16, %b: bf16) -> f32 {
  %0 = arith.addf %f, %g fastmath<fast> : f32
  %1 = arith.subf %f, %g : f32
  %2 = arith.mulf %f, %g fastmath<nnan,ninf> : f32
  %3 = arith.divf %d, %e fastmath<arcp,contract,afn,reassoc,nsz> : f64
  %4 = arith.remf %h, %h : f16
  %5 = arith.negf %b fastmath<contract> : bf16
  %6 = arith.maximumf %f, %g : f32
  %7 = arith.minimumf %f, %g : f32
  %8 = arith.maxnumf %f, %g : f32
  %9 = arith.minnumf %f, %g fastmath<fast> : f32
  return %0 : f32
}
// -----
// Constants of all types.
func.func @constants() -> index {
  %0 = arith.constant 5 : index
  %1 = arith.constant -7 : i32
  %2 = arith.constant 1.5 : f32
  %3 = arith.constant true
  %4 = arith.constant dense<[1, 2, 3, 4]> : vector<4xindex>
  %5 = arith.constant dense<3> : vector<4xi32>
  %6 = arith.constant 0x7FF0000000000000 : f64
  %7 = arith.constant 170141183460469231731687303715884105727 : i128
  %8 = arith.constant dense<1.0> : vector<[4]xf32>
  return %0 : index
}
// -----
// All predicates of integers.
func.func @compared(%a: index, %b: index, %i: i8, %j: i8) {
  %0 = arith.cmpi eq, %a, %b : index
  %1 = arith.cmpi ne, %a, %b : index
  %2 = arith.cmpi slt, %a, %b : index
  %3 = arith.cmpi sle, %i, %j : i8
  %4 = arith.cmpi sgt, %i, %j : i8
  %5 = arith.cmpi sge, %a, %b : index
  %6 = arith.cmpi ult, %a, %b : index
  %7 = arith.cmpi ule, %a, %b : index
  %8 = arith.cmpi ugt, %a, %b : index
  %9 = arith.cmpi uge, %a, %b : index
  return
}
// -----
// All predicates of floats.
func.func @compared(%f: f32, %g: f32, %p: i1) {
  %0 = arith.cmpf oeq, %f, %g : f32
  %1 = arith.cmpf ogt, %f, %g : f32
  %2 = arith.cmpf oge, %f, %g fastmath<fast> : f32
  %3 = arith.cmpf olt, %f, %g : f32
  %4 = arith.cmpf ole, %f, %g : f32
  %5 = arith.cmpf one, %f, %g : f32
  %6 = arith.cmpf ord, %f, %g : f32
  %7 = arith.cmpf ueq, %f, %g : f32
  %8 = arith.cmpf ugt, %f, %g : f32
  %9 = arith.cmpf uge, %f, %g : f32
  %10 = arith.cmpf ult, %f, %g : f32
  %11 = arith.cmpf ule, %f, %g : f32
  %12 = arith.cmpf une, %f, %g fastmath<ninf> : f32
  %13 = arith.cmpf uno, %f, %g : f32
  return
}
// -----
// Casts, to and from index among them: none where the width is the same.
func.func @casts(%a: index, %i: i32, %l: i64, %f: f32, %d: f64) {
  %0 = arith.extsi %i : i32 to i64
  %1 = arith.extui %i : i32 to i64
  %2 = arith.trunci %l overflow<nsw> : i64 to i32
  %3 = arith.extf %f : f32 to f64
  %4 = arith.extf %f fastmath<nnan> : f32 to f64
  %5 = arith.truncf %d : f64 to f32
  %6 = arith.sitofp %i : i32 to f32
  %7 = arith.uitofp %i : i32 to f32
  %8 = arith.fptosi %f : f32 to i32
  %9 = arith.fptoui %f : f32 to i32
  %10 = arith.bitcast %f : f32 to i32
  %11 = arith.index_cast %i : i32 to index
  %12 = arith.index_cast %a : index to i32
  %13 = arith.index_castui %i : i32 to index
  %14 = arith.index_cast %l : i64 to index
  %15 = arith.index_cast %a : index to i64
  %16 = arith.index_castui %a : index to i128
  return
}
// -----
// Vectors of one dimension, scalable ones among them.
func.func @vectors(%v: vector<4xi32>, %w: vector<4xi32>, %f: vector<[4]xf32>, %x: vector<8xindex>, %y: vector<8xindex>) -> vector<8xindex> {
  %0 = arith.cmpi ugt, %v, %w : vector<4xi32>
  %1 = arith.select %0, %v, %w : vector<4xi1>, vector<4xi32>
  %2 = arith.divf %f, %f : vector<[4]xf32>
  %3 = arith.addi %x, %y overflow<nsw> : vector<8xindex>
  %4 = arith.index_cast %v : vector<4xi32> to vector<4xindex>
  %5 = arith.extsi %v : vector<4xi32> to vector<4xi64>
  %6 = arith.bitcast %v : vector<4xi32> to vector<4xf32>
  %7 = arith.cmpi slt, %x, %y : vector<8xindex>
  %8 = arith.index_cast %x : vector<8xindex> to vector<8xi64>
  return %3 : vector<8xindex>
}
// -----
// Select: of index, and by one bit for a vector.
func.func @select(%p: i1, %a: index, %b: index, %v: vector<4xi32>, %w: vector<4xi32>) -> (index, vector<4xi32>) {
  %0 = arith.select %p, %a, %b : index
  %1 = arith.select %p, %v, %w : vector<4xi32>
  return %0, %1 : index, vector<4xi32>
}
// -----
// Results of twice the width.
func.func @extended(%i: i32, %j: i32, %a: i8, %b: i8) -> (i32, i1, i32, i8) {
  %0:2 = arith.addui_extended %i, %j : i32, i1
  %1:2 = arith.mulsi_extended %i, %j : i32
  %2:2 = arith.mului_extended %a, %b : i8
  return %0#0, %0#1, %1#1, %2#1 : i32, i1, i32, i8
}
// -----
// Attributes that the ops do not define go along.
func.func @attributes(%a: index, %b: index, %f: f32, %g: f32) -> index {
  %0 = arith.addi %a, %b {foo} : index
  %1 = arith.mulf %f, %g {bar = 1 : i8} : f32
  %2 = arith.cmpi slt, %a, %b {baz} : index
  %3 = arith.select %2, %a, %b {foo} : index
  %4 = arith.constant {foo} 3 : index
  return %3 : index
}
