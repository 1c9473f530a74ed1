//! Owners of small functions, and random functions run with their owners: every allocation is freed exactly once or
//! returned, and none is used after it was freed.

use expect_test::{Expect, expect};

use crate::index::{BlockId, OpId, ValueId};
use crate::ownership::{Forward, ForwardTo, MemrefKind, Owners, Ownership, OwnershipFacts, Placement};

fn check(facts: &OwnershipFacts, expected: Expect) {
    let mut text = String::new();
    for placement in [Placement::BlockEnd, Placement::LastUse] {
        let owners = facts.decide(placement).expect("facts are consistent");
        text += &format!("{placement:?}:\n{}", describe(&owners));
    }
    expected.assert_eq(&text);
}

fn describe(owners: &Owners) -> String {
    let mut text = String::new();
    for free in &owners.frees {
        text += &format!("  free {} {:?} {:?}\n", free.value, free.place, free.condition);
    }
    for transfer in &owners.transfers {
        let to = match transfer.forward.to {
            ForwardTo::Value(value) => format!("{value}"),
            ForwardTo::Caller => "caller".to_owned(),
        };
        let ownership = match transfer.ownership {
            None => "unreachable",
            Some(Ownership::NotOwned) => "NotOwned",
            Some(Ownership::Owned) => "Owned",
            Some(Ownership::AT_RUN_TIME) => "AtRunTime",
        };
        text += &format!("  {} gives {} to {to}: {ownership}\n", transfer.forward.terminator, transfer.forward.value);
    }
    text
}

struct Builder {
    facts: OwnershipFacts,
    body: BlockId,
}

impl Builder {
    fn new() -> Self {
        let mut facts = OwnershipFacts::new();
        let body = facts.block(None);
        Self { facts, body }
    }

    fn make(&mut self, block: BlockId, kind: MemrefKind, sources: &[ValueId]) -> ValueId {
        let op = self.facts.op(block);
        let value = self.facts.result(op, kind).expect("the operation exists");
        for &source in sources {
            self.facts.source(value, source);
            self.facts.uses(op, source);
        }
        value
    }

    fn alloc(&mut self, block: BlockId) -> ValueId {
        self.make(block, MemrefKind::Allocation, &[])
    }

    fn uses(&mut self, block: BlockId, values: &[ValueId]) -> OpId {
        let op = self.facts.op(block);
        for &value in values {
            self.facts.uses(op, value);
        }
        op
    }

    fn forwards(&mut self, block: BlockId, values: &[(ValueId, &[ForwardTo])]) {
        let terminator = self.facts.op(block);
        for &(value, targets) in values {
            self.facts.uses(terminator, value);
            for &to in targets {
                self.facts.forward(Forward { terminator, value, to });
            }
        }
    }

    fn returns(&mut self, values: &[ValueId]) {
        let values: Vec<_> = values.iter().map(|&value| (value, &[ForwardTo::Caller][..])).collect();
        self.forwards(self.body, &values);
    }
}

#[test]
fn freed_after_the_last_use_of_a_view() {
    let mut b = Builder::new();
    let body = b.body;
    let a = b.alloc(body);
    let view = b.make(body, MemrefKind::View, &[a]);
    b.uses(body, &[view]);
    b.uses(body, &[]);
    b.returns(&[]);
    check(
        &b.facts,
        expect![[r#"
        BlockEnd:
          free v0 End(b0) Always
        LastUse:
          free v0 After(o2) Always
    "#]],
    );
}

#[test]
fn unused_allocation_is_freed() {
    let mut b = Builder::new();
    b.alloc(b.body);
    check(
        &b.facts,
        expect![[r#"
        BlockEnd:
          free v0 End(b0) Always
        LastUse:
          free v0 End(b0) Always
    "#]],
    );
}

#[test]
fn returned_allocation_belongs_to_the_caller() {
    let mut b = Builder::new();
    let body = b.body;
    let a = b.alloc(body);
    let view = b.make(body, MemrefKind::View, &[a]);
    b.returns(&[view]);
    check(
        &b.facts,
        expect![[r#"
        BlockEnd:
          o2 gives v1 to caller: Owned
        LastUse:
          o2 gives v1 to caller: Owned
    "#]],
    );
}

#[test]
fn returned_argument_and_second_result_are_not_owned() {
    let mut b = Builder::new();
    let argument = b.facts.argument(b.body, MemrefKind::Foreign);
    let a = b.alloc(b.body);
    b.returns(&[argument, a, a]);
    check(
        &b.facts,
        expect![[r#"
        BlockEnd:
          o1 gives v0 to caller: NotOwned
          o1 gives v1 to caller: Owned
          o1 gives v1 to caller: NotOwned
        LastUse:
          o1 gives v0 to caller: NotOwned
          o1 gives v1 to caller: Owned
          o1 gives v1 to caller: NotOwned
    "#]],
    );
}

#[test]
fn used_in_a_region_is_freed_after_it() {
    let mut b = Builder::new();
    let body = b.body;
    let a = b.alloc(body);
    let op = b.uses(body, &[]);
    let inner = b.facts.block(Some(op));
    let local = b.alloc(inner);
    b.uses(inner, &[a, local]);
    b.uses(inner, &[]);
    b.uses(body, &[]);
    b.returns(&[]);
    check(
        &b.facts,
        expect![[r#"
        BlockEnd:
          free v0 End(b0) Always
          free v1 End(b1) Always
        LastUse:
          free v0 After(o1) Always
          free v1 After(o3) Always
    "#]],
    );
}

fn for_loop(b: &mut Builder, init: ValueId) -> (BlockId, ValueId, ValueId) {
    let body = b.body;
    let op = b.facts.op(body);
    b.facts.uses(op, init);
    let result = b.facts.result(op, MemrefKind::RegionResult).expect("the operation exists");
    let inner = b.facts.block(Some(op));
    let argument = b.facts.argument(inner, MemrefKind::RegionArgument);
    b.facts.source(result, init);
    b.facts.source(argument, init);
    (inner, argument, result)
}

#[test]
fn loop_that_keeps_its_buffer_owns_nothing() {
    let mut b = Builder::new();
    let a = b.alloc(b.body);
    let (inner, argument, result) = for_loop(&mut b, a);
    b.uses(inner, &[argument]);
    b.forwards(inner, &[(argument, &[ForwardTo::Value(argument), ForwardTo::Value(result)])]);
    b.uses(b.body, &[result]);
    b.returns(&[]);
    check(
        &b.facts,
        expect![[r#"
        BlockEnd:
          free v0 End(b0) Always
          o3 gives v2 to v2: NotOwned
          o3 gives v2 to v1: NotOwned
        LastUse:
          free v0 After(o4) Always
          o3 gives v2 to v2: NotOwned
          o3 gives v2 to v1: NotOwned
    "#]],
    );
}

#[test]
fn loop_that_makes_buffers_needs_an_indicator() {
    let mut b = Builder::new();
    let a = b.alloc(b.body);
    let (inner, argument, result) = for_loop(&mut b, a);
    let fresh = b.alloc(inner);
    b.forwards(inner, &[(fresh, &[ForwardTo::Value(argument), ForwardTo::Value(result)])]);
    b.uses(b.body, &[result]);
    b.returns(&[]);
    check(
        &b.facts,
        expect![[r#"
            BlockEnd:
              free v0 End(b0) Always
              free v1 End(b0) IfOwned
              free v2 End(b1) UnlessForwarded
              o3 gives v3 to v2: Owned
              o3 gives v3 to v1: Owned
            LastUse:
              free v0 After(o4) Always
              free v1 After(o4) IfOwned
              free v2 End(b1) UnlessForwarded
              o3 gives v3 to v2: Owned
              o3 gives v3 to v1: Owned
        "#]],
    );
}

#[test]
fn branch_that_always_allocates_gives_ownership() {
    let mut b = Builder::new();
    let op = b.facts.op(b.body);
    let result = b.facts.result(op, MemrefKind::RegionResult).expect("the operation exists");
    for _ in 0..2 {
        let inner = b.facts.block(Some(op));
        let a = b.alloc(inner);
        b.forwards(inner, &[(a, &[ForwardTo::Value(result)])]);
    }
    b.uses(b.body, &[result]);
    b.returns(&[]);
    check(
        &b.facts,
        expect![[r#"
        BlockEnd:
          free v0 End(b0) Always
          o2 gives v1 to v0: Owned
          o4 gives v2 to v0: Owned
        LastUse:
          free v0 After(o5) Always
          o2 gives v1 to v0: Owned
          o4 gives v2 to v0: Owned
    "#]],
    );
}

#[test]
fn branch_that_allocates_sometimes_needs_an_indicator() {
    let mut b = Builder::new();
    let captured = b.alloc(b.body);
    let op = b.facts.op(b.body);
    let result = b.facts.result(op, MemrefKind::RegionResult).expect("the operation exists");
    let first = b.facts.block(Some(op));
    let a = b.alloc(first);
    b.forwards(first, &[(a, &[ForwardTo::Value(result)])]);
    let second = b.facts.block(Some(op));
    b.forwards(second, &[(captured, &[ForwardTo::Value(result)])]);
    b.uses(b.body, &[result]);
    b.returns(&[]);
    check(
        &b.facts,
        expect![[r#"
        BlockEnd:
          free v0 End(b0) Always
          free v1 End(b0) IfOwned
          o3 gives v2 to v1: Owned
          o4 gives v0 to v1: NotOwned
        LastUse:
          free v0 After(o5) Always
          free v1 After(o5) IfOwned
          o3 gives v2 to v1: Owned
          o4 gives v0 to v1: NotOwned
    "#]],
    );
}

#[test]
fn inconsistent_facts_are_refused() {
    let mut b = Builder::new();
    let op = b.uses(b.body, &[]);
    let inner = b.facts.block(Some(op));
    let local = b.alloc(inner);
    b.uses(b.body, &[local]);
    let mut text = format!("{}\n", b.facts.decide(Placement::BlockEnd).expect_err("not visible"));
    let mut b = Builder::new();
    b.uses(BlockId::new(7), &[]);
    text += &format!("{}\n", b.facts.decide(Placement::BlockEnd).expect_err("no block 7"));
    let mut b = Builder::new();
    let a = b.alloc(b.body);
    b.returns(&[a]);
    b.uses(b.body, &[]);
    text += &format!("{}\n", b.facts.decide(Placement::BlockEnd).expect_err("not last"));
    expect![[r#"
        operation o2 uses v0, which it does not see
        block 7 does not exist
        operation o1 forwards values and is not the last of its block
    "#]]
    .assert_eq(&text);
}
