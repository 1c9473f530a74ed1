func.func @main(%arg0: i64) {
  %c0_i64 = arith.constant 0 : i64
  %c0_i64_0 = arith.constant 0 : i64
  %0 = call @monopour_rt_input_dim(%arg0, %c0_i64, %c0_i64_0) : (i64, i64, i64) -> i64
  %c1_i64 = arith.constant 1 : i64
  %1 = call @monopour_rt_input_scalar(%arg0, %c1_i64) : (i64, i64) -> i64
  %2 = arith.index_cast %1 : i64 to index
  %c2_i64 = arith.constant 2 : i64
  %3 = call @monopour_rt_input_scalar(%arg0, %c2_i64) : (i64, i64) -> i64
  %4 = arith.trunci %3 : i64 to i32
  %5 = arith.bitcast %4 : i32 to f32
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %6 = arith.index_cast %0 : i64 to index
  %7 = arith.index_cast %6 : index to i64
  %c140737488355328_i64 = arith.constant 140737488355328 : i64
  %8 = arith.cmpi uge, %7, %c140737488355328_i64 : i64
  %9 = arith.uitofp %7 : i64 to f64
  %cst = arith.constant 0x42E0000000000000 : f64
  %10 = arith.cmpf oge, %9, %cst : f64
  %11 = arith.ori %8, %10 : i1
  scf.if %11 {
    %c4_i64_4 = arith.constant 4 : i64
    func.call @monopour_rt_trap(%arg0, %c4_i64_4) : (i64, i64) -> ()
  }
  %c4_i64 = arith.constant 4 : i64
  %12 = arith.muli %7, %c4_i64 : i64
  %13 = call @monopour_rt_alloc(%arg0, %12) : (i64, i64) -> i64
  %14 = call @monopour_rt_input(%arg0, %c0_i64) : (i64, i64) -> i64
  %15 = scf.for %arg1 = %c0 to %2 step %c1 iter_args(%arg2 = %5) -> (f32) {
    %c0_i64_4 = arith.constant 0 : i64
    %c-1_i64 = arith.constant -1 : i64
    func.call @monopour_rt_arg(%arg0, %13, %c0_i64_4, %c-1_i64) : (i64, i64, i64, i64) -> ()
    %18 = arith.index_cast %6 : index to i64
    func.call @monopour_rt_scalar(%arg0, %18) : (i64, i64) -> ()
    %19 = arith.bitcast %arg2 : f32 to i32
    %20 = arith.extui %19 : i32 to i64
    func.call @monopour_rt_scalar(%arg0, %20) : (i64, i64) -> ()
    %21 = arith.index_cast %arg1 : index to i64
    func.call @monopour_rt_scalar(%arg0, %21) : (i64, i64) -> ()
    %c0_i64_5 = arith.constant 0 : i64
    %22 = arith.index_cast %6 : index to i64
    %c1_i64_6 = arith.constant 1 : i64
    %c1_i64_7 = arith.constant 1 : i64
    func.call @monopour_rt_dispatch(%arg0, %c0_i64_5, %22, %c1_i64_6, %c1_i64_7) : (i64, i64, i64, i64, i64) -> ()
    %23 = arith.index_cast %arg1 : index to i64
    %24 = arith.cmpi uge, %23, %0 : i64
    scf.if %24 {
      %c1_i64_10 = arith.constant 1 : i64
      func.call @monopour_rt_trap(%arg0, %c1_i64_10) : (i64, i64) -> ()
    }
    %c4_i64_8 = arith.constant 4 : i64
    %25 = arith.muli %23, %c4_i64_8 : i64
    %c4_i64_9 = arith.constant 4 : i64
    %26 = func.call @monopour_rt_read(%arg0, %14, %25, %c4_i64_9) : (i64, i64, i64, i64) -> i64
    %27 = arith.trunci %26 : i64 to i32
    %28 = arith.bitcast %27 : i32 to f32
    scf.yield %28 : f32
  }
  %c0_i64_1 = arith.constant 0 : i64
  %c0_i64_2 = arith.constant 0 : i64
  call @monopour_rt_result_dim(%arg0, %c0_i64_1, %c0_i64_2, %7) : (i64, i64, i64, i64) -> ()
  call @monopour_rt_result(%arg0, %c0_i64_1, %13) : (i64, i64, i64) -> ()
  %c1_i64_3 = arith.constant 1 : i64
  %16 = arith.bitcast %15 : f32 to i32
  %17 = arith.extui %16 : i32 to i64
  call @monopour_rt_result_scalar(%arg0, %c1_i64_3, %17) : (i64, i64, i64) -> ()
  return
}