//! Block arguments that change their types while casts of them are live.

use super::{check, parse, rename};
use monopour_ir::conversion::{ConversionTarget, Mode, PatternSet, TypeConversion, TypeConverter};
use monopour_ir::{Attr, OpSpec, Type};

#[test]
fn what_reads_an_argument_in_its_new_type_goes_on_doing_so() {
    // ^bb1 changes first, so the branch in ^bb2 forwards a cast of %y; then %y itself changes, and `t.use` reads its old type.
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
    check(module, &target, &patterns, Mode::Partial).expect("converts");
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

#[test]
fn what_the_adaptor_gives_outlives_the_change_of_a_block_argument() {
    // The branch converts its successor, and forwards the argument of that block, which the adaptor gives as a cast.
    let module = parse(
        "\
func.func @f(%a: i64) {
  %0 = builtin.unrealized_conversion_cast %a : i64 to index
  cf.br ^bb1(%0 : index)
^bb1(%x: index):
  \"t.use\"(%x) : (index) -> ()
  cf.br ^bb1(%x : index) {mark}
}
",
    );
    let mut converter = TypeConverter::new();
    converter.keep_others();
    converter.add(|ty| ty.is_index().then(|| TypeConversion::one(Type::integer(ty.context(), 64))));
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("cf.br", |op| op.attr("mark").is_none());
    let mut patterns = PatternSet::with_converter(&converter);
    patterns.add_fn("cf.br", |op, adaptor, rw| {
        let (to, given) = (op.successors()[0], adaptor.operand(0));
        rw.convert_block_signature(to, &[vec![given.ty()]])?;
        rw.create(OpSpec::new("llvm.br", op.location()).operands(&[given]).successor(to))?;
        rw.erase(op);
        Ok(())
    });
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(
        module.op().to_string(),
        "\
module {
  func.func @f(%arg0: i64) {
    %0 = builtin.unrealized_conversion_cast %arg0 : i64 to index
    %1 = builtin.unrealized_conversion_cast %0 : index to i64
    cf.br ^bb1(%1 : i64)
  ^bb1(%2: i64):  // 2 preds: ^bb0, ^bb1
    %3 = builtin.unrealized_conversion_cast %2 : i64 to index
    \"t.use\"(%3) : (index) -> ()
    llvm.br ^bb1(%2 : i64)
  }
}
"
    );
}

#[test]
fn a_cast_made_where_one_of_the_input_was_erased_is_the_drivers() {
    // Each cast of the input is replaced, by a cast of the driver's for `t.keep`: often one at the address of an earlier one.
    let uses = "  %c = builtin.unrealized_conversion_cast %a : i64 to index\n  \"t.keep\"(%c) : (index) -> ()\n  \"t.use\"(%c) : (index) -> ()\n";
    let text: String = (0..50).map(|i| format!("func.func @f{i}(%a: i64) {{\n{uses}  return\n}}\n")).collect();
    let module = parse(&text);
    let mut converter = TypeConverter::new();
    converter.keep_others();
    converter.add(|ty| ty.is_index().then(|| TypeConversion::one(Type::integer(ty.context(), 64))));
    let mut target = ConversionTarget::new();
    target.illegal_op("builtin.unrealized_conversion_cast").illegal_op("t.use");
    let mut patterns = PatternSet::with_converter(&converter);
    patterns.add_fn("builtin.unrealized_conversion_cast", |op, adaptor, rw| {
        rw.replace_op(op, &[adaptor.operand(0)]);
        Ok(())
    });
    patterns.add(rename("t.use", "t.used"));
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    let used = module.op().find_all("t.used");
    assert!(used.len() == 50 && used.iter().all(|op| op.operand(0).as_block_arg().is_some()), "{}", module.op());
}

#[test]
fn a_cast_that_a_pattern_makes_is_an_op_like_any_other() {
    let module = parse("\"t.a\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let (wide, index) = (Type::integer(op.context(), 64), Type::index(op.context()));
        let def = rw.create(OpSpec::new("t.def", op.location()).results(&[wide, wide]))?;
        let cast = OpSpec::new("builtin.unrealized_conversion_cast", op.location());
        let both = rw.create(cast.operands(&def.results()).results(&[index]))?;
        rw.create(OpSpec::new("t.b", op.location()).operands(&both.results()))?;
        rw.erase(op);
        Ok(())
    });
    patterns.add(rename("t.b", "t.c"));
    let stats = check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!((stats.casts_created, stats.casts_left), (0, 0));
    assert_eq!(
        module.op().to_string(),
        "\
module {
  %0:2 = \"t.def\"() : () -> (i64, i64)
  %1 = unrealized_conversion_cast %0#0, %0#1 : i64, i64 to index
  \"t.c\"(%1) : (index) -> ()
}
"
    );
}
