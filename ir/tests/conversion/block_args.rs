//! Block arguments that change their types while casts of them are there.

use super::{check, parse};
use monopour_ir::conversion::{ConversionTarget, Mode, PatternSet};
use monopour_ir::{Attr, Type};

#[test]
fn what_reads_an_argument_in_its_new_type_goes_on_doing_so() {
    // ^bb1 changes first, so the branch in ^bb2 hands over a cast of %y; then %y itself changes, and `t.use` reads it as before.
    let module = parse(
        "\
func.func @f(%a: index) {
  cf.br ^bb2(%a : index)
^bb1(%x: index):
  return
^bb2(%y: index):
  \"t.use\"(%y) : (index) -> ()
  cf.br ^bb1(%y : index)
}
",
    );
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("func.func", |op| op.function_type().is_some_and(|(i, _)| !i[0].is_index()));
    let mut patterns = PatternSet::new();
    patterns.add_fn("func.func", |op, _, rw| {
        let ty = Type::integer(op.context(), 64);
        for block in op.region(0).blocks() {
            rw.convert_block_signature(block, &vec![vec![ty]; block.num_args()])?;
        }
        rw.set_attr(op, "function_type", Attr::ty(Type::function(op.context(), &[ty], &[])));
        Ok(())
    });
    check(&module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(
        module.op().to_string(),
        "\
module {
  func.func @f(%arg0: i64) {
    cf.br ^bb2(%arg0 : i64)
  ^bb1(%0: i64):  // pred: ^bb2
    return
  ^bb2(%1: i64):  // pred: ^bb0
    %2 = builtin.unrealized_conversion_cast %1 : i64 to index
    \"t.use\"(%2) : (index) -> ()
    cf.br ^bb1(%1 : i64)
  }
}
"
    );
}
