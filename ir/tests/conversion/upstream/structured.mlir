// Loops that carry values, in one another, with a branch inside.
func.func private @use(index, f32)
func.func @nest(%lb: index, %ub: index, %st: index, %p: i1, %x: f32) -> (index, f32) {
  %r:2 = scf.for %i = %lb to %ub step %st iter_args(%a = %lb, %b = %x) -> (index, f32) {
    %s = arith.addi %a, %i : index
    %q = scf.if %p -> f32 {
      scf.yield %b : f32
    } else {
      %z = arith.addf %b, %x : f32
      scf.yield %z : f32
    }
    scf.for %j = %lb to %i step %st {
      func.call @use(%j, %q) : (index, f32) -> ()
    }
    scf.yield %s, %q : index, f32
  } {tag}
  return %r#0, %r#1 : index, f32
}
// -----
// Three loops in one another.
func.func private @use(index, index, index)
func.func @cube(%n: index, %st: index) {
  scf.for %i = %st to %n step %st {
    scf.for %j = %st to %n step %st {
      scf.for %k = %i to %j step %st {
        func.call @use(%i, %j, %k) : (index, index, index) -> ()
      }
    }
  }
  return
}
// -----
// An unsigned loop of another type; what says something to LLVM goes to the branch back, the rest is dropped.
#loop = #llvm.loop_annotation<disableNonforced = true>
func.func private @use(i32)
func.func @annotated(%lb: i32, %ub: i32, %st: i32, %p: i1) {
  scf.for unsigned %k = %lb to %ub step %st : i32 {
    func.call @use(%k) : (i32) -> ()
  } {llvm.loop_annotation = #loop, foo}
  scf.while : () -> () {
    scf.condition(%p)
  } do {
    func.call @use(%lb) : (i32) -> ()
    scf.yield
  } attributes {foo, llvm.loop_annotation = #loop}
  return
}
// -----
// No else; no results; nested.
func.func private @use(i1)
func.func @ifs(%p: i1, %q: i1) {
  scf.if %p {
    scf.if %q {
      func.call @use(%p) : (i1) -> ()
    } else {
      func.call @use(%q) : (i1) -> ()
    }
  }
  return
}
// -----
// Several results, one of each branch used by the next.
func.func @chosen(%p: i1, %a: index, %b: index, %f: f64) -> (index, f64) {
  %0:2 = scf.if %p -> (index, f64) {
    %1 = arith.subi %a, %b : index
    scf.yield %1, %f : index, f64
  } else {
    scf.yield %b, %f : index, f64
  } {foo}
  %2:2 = scf.if %p -> (index, f64) {
    scf.yield %0#0, %0#1 : index, f64
  } else {
    %3 = arith.negf %0#1 : f64
    scf.yield %a, %3 : index, f64
  }
  return %2#0, %2#1 : index, f64
}
// -----
// A loop whose second region has other types than the first.
func.func @while(%n: index, %st: index, %x: f32) -> (f32, index) {
  %w:2 = scf.while (%c = %n, %d = %x) : (index, f32) -> (f32, index) {
    %go = arith.cmpi slt, %c, %st : index
    scf.condition(%go) %d, %c : f32, index
  } do {
  ^bb0(%e: f32, %g: index):
    %next = arith.addi %g, %st : index
    scf.yield %next, %e : index, f32
  }
  return %w#0, %w#1 : f32, index
}
// -----
// A loop whose second region only hands on what it gets has no block for it.
func.func @do_while(%p: i1, %a: index) -> index {
  scf.while : () -> () {
    scf.condition(%p)
  } do {
    scf.yield
  }
  %0 = scf.while (%b = %a) : (index) -> index {
    %c = arith.addi %b, %a : index
    %go = arith.cmpi ult, %c, %b : index
    scf.condition(%go) %c : index
  } do {
  ^bb0(%d: index):
    scf.yield %d : index
  }
  return %0 : index
}
// -----
// Hands on in another order: not the same.
func.func @swap(%p: i1, %a: index, %b: index) -> (index, index) {
  %0:2 = scf.while (%c = %a, %d = %b) : (index, index) -> (index, index) {
    scf.condition(%p) %c, %d : index, index
  } do {
  ^bb0(%e: index, %f: index):
    scf.yield %f, %e : index, index
  }
  return %0#0, %0#1 : index, index
}
// -----
// A switch over three cases, one negative, with a result.
func.func @switch(%i: index, %x: f32, %y: f32) -> f32 {
  %0 = scf.index_switch %i -> f32
  case 2 {
    scf.yield %x : f32
  }
  case -5 {
    %1 = arith.mulf %x, %y : f32
    scf.yield %1 : f32
  }
  case 100 {
    scf.yield %y : f32
  }
  default {
    %1 = arith.subf %x, %y : f32
    scf.yield %1 : f32
  }
  return %0 : f32
}
// -----
// No cases at all.
func.func private @use(index)
func.func @no_cases(%i: index) {
  scf.index_switch %i {foo}
  default {
    func.call @use(%i) : (index) -> ()
    scf.yield
  }
  return
}
// -----
// A region of several blocks, two of which yield.
func.func @region(%p: i1, %a: index, %x: f32) -> (index, f32) {
  %0:2 = scf.execute_region -> (index, f32) {
    cf.cond_br %p, ^a, ^b(%a : index)
  ^a:
    %1 = arith.negf %x : f32
    scf.yield %a, %1 : index, f32
  ^b(%k: index):
    %2 = arith.addi %k, %a : index
    scf.yield %2, %x : index, f32
  }
  scf.execute_region {
    scf.yield
  } {foo}
  return %0#0, %0#1 : index, f32
}
// -----
// Two dimensions without a result.
func.func private @use(index, index)
func.func @parallel(%lb: index, %ub: index, %st: index) {
  scf.parallel (%i, %j) = (%lb, %st) to (%ub, %lb) step (%st, %ub) {
    func.call @use(%i, %j) : (index, index) -> ()
    scf.reduce
  }
  return
}
// -----
// Two reductions at once, one of a loop's value.
func.func @reduce(%lb: index, %ub: index, %st: index, %x: f32, %n: i32) -> (f32, i32) {
  %0:2 = scf.parallel (%i, %j) = (%lb, %lb) to (%ub, %ub) step (%st, %st) init (%x, %n) -> (f32, i32) {
    %1 = arith.index_cast %i : index to i32
    scf.reduce(%x, %1 : f32, i32) {
    ^bb0(%a: f32, %b: f32):
      %2 = arith.mulf %a, %b : f32
      %3 = arith.addf %2, %x : f32
      scf.reduce.return %3 : f32
    }, {
    ^bb0(%a: i32, %b: i32):
      %2 = arith.maxsi %a, %b : i32
      scf.reduce.return %2 : i32
    }
  }
  return %0#0, %0#1 : f32, i32
}
// -----
// One kind in the other, all of them.
func.func private @use(index)
func.func @all(%n: index, %st: index, %p: i1) -> index {
  %0 = scf.while (%a = %n) : (index) -> index {
    %1 = scf.if %p -> i1 {
      %c = arith.cmpi sge, %a, %n : index
      scf.yield %c : i1
    } else {
      scf.yield %p : i1
    }
    scf.condition(%1) %a : index
  } do {
  ^bb0(%b: index):
    %2 = scf.for %i = %n to %b step %st iter_args(%s = %b) -> (index) {
      %3 = scf.index_switch %i -> index
      case 1 {
        %4 = scf.execute_region -> index {
          scf.parallel (%j) = (%n) to (%s) step (%st) {
            func.call @use(%j) : (index) -> ()
            scf.reduce
          }
          scf.yield %s : index
        }
        scf.yield %4 : index
      }
      default {
        scf.yield %i : index
      }
      scf.yield %3 : index
    }
    scf.yield %2 : index
  }
  return %0 : index
}
// -----
// A call of itself in a branch.
func.func @recursive(%n: index, %one: index) -> index {
  %p = arith.cmpi ule, %n, %one : index
  %0 = scf.if %p -> index {
    scf.yield %one : index
  } else {
    %1 = arith.subi %n, %one : index
    %2 = func.call @recursive(%1, %one) : (index, index) -> index
    %3 = arith.muli %n, %2 : index
    scf.yield %3 : index
  }
  return %0 : index
}
// -----
// A block with arguments around a loop.
func.func @between(%p: i1, %n: index, %st: index) -> index {
  cf.cond_br %p, ^a(%n : index), ^b(%st, %n : index, index)
^a(%x: index):
  %0 = scf.for %i = %x to %n step %st iter_args(%s = %x) -> (index) {
    %1 = arith.xori %s, %i : index
    scf.yield %1 : index
  }
  cf.br ^b(%0, %x : index, index)
^b(%y: index, %z: index):
  scf.for %i = %y to %z step %st {
    scf.yield
  }
  return %y : index
}
