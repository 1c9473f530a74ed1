// Conversions of the bench's modules written out in C++: no driver, no patterns, no casts, one walk. Only what MLIR itself must do is
// left (ops and blocks are made, uses replaced, ops erased), so that a reader sees what a driver adds to. Blocks are split by moving
// the fewer ops, as under the driver.
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

extern "C" {
bool monopour_shim_split_block(MlirOperation op, void *out);
}

namespace {

// Copies ops from templates: properties are copied as a whole.
class Maker {
public:
  explicit Maker(MLIRContext *cx) : cx(cx), builder(cx) {}
  ~Maker() {
    for (auto &entry : models) entry.second->destroy();
  }
  // A template by the name and a number that distinguishes its properties.
  Operation *model(StringRef name, int64_t key, function_ref<void(Operation *)> set = {}) {
    Operation *&op = models[{name.data(), key}];
    if (!op) {
      OperationState state(UnknownLoc::get(cx), name);
      op = Operation::create(state);
      if (set) set(op);
    }
    return op;
  }
  Operation *create(Operation *model, Location loc, ValueRange operands, TypeRange types, BlockRange to = {}) {
    return Operation::create(loc, model->getName(), types, operands, model->getRawDictionaryAttrs(),
                             model->getPropertiesStorage(), to, 0);
  }
  Operation *conditional(StringRef name, int32_t then, int32_t other) {
    return model(name, then * 1000 + other, [&](Operation *op) {
      op->setInherentAttr(builder.getStringAttr("operandSegmentSizes"), builder.getDenseI32ArrayAttr({1, then, other}));
    });
  }

private:
  MLIRContext *cx;
  Builder builder;
  llvm::DenseMap<std::pair<const char *, int64_t>, Operation *> models;
};

void append(Block *block, Operation *op) { block->getOperations().push_back(op); }

// The blocks before an op and from it on.
std::pair<Block *, Block *> splitAt(Operation *op) {
  struct {
    MlirBlock before, rest;
    MlirOperation around;
    bool isBeforeNew;
  } split;
  monopour_shim_split_block(wrap(op), &split);
  return {unwrap(split.before), unwrap(split.rest)};
}

void insertBefore(Operation *at, Operation *op) { at->getBlock()->getOperations().insert(at->getIterator(), op); }

class ToLlvm {
public:
  explicit ToLlvm(MLIRContext *cx) : make(cx), i64(IntegerType::get(cx, 64)), value(StringAttr::get(cx, "value")) {}

  void function(func::FuncOp func) {
    OpBuilder b(func);
    auto convert = [&](Type ty) { return type(ty); };
    auto inputs = llvm::map_to_vector(func.getFunctionType().getInputs(), convert);
    auto ty = LLVM::LLVMFunctionType::get(type(func.getFunctionType().getResult(0)), inputs);
    auto made = LLVM::LLVMFuncOp::create(b, func.getLoc(), func.getName(), ty);
    made.getBody().takeBody(func.getBody());
    func.erase();
    for (Block &block : made.getBody()) {
      for (BlockArgument arg : block.getArguments()) arg.setType(type(arg.getType()));
      for (Operation &op : llvm::make_early_inc_range(block)) convertOp(&op);
    }
  }

private:
  Maker make;
  Type i64;
  StringAttr value;

  Type type(Type ty) { return isa<IndexType>(ty) ? i64 : ty; }

  void convertOp(Operation *op) {
    Operation *model = modelOf(op);
    if (!model) {
      // A cast between types that are equal by now.
      op->replaceAllUsesWith(op->getOperands());
      return op->erase();
    }
    SmallVector<Type, 1> types;
    for (Type ty : op->getResultTypes()) types.push_back(type(ty));
    Operation *made = make.create(model, op->getLoc(), op->getOperands(), types, op->getSuccessors());
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) made->setInherentAttr(value, constant.getValue());
    insertBefore(op, made);
    op->replaceAllUsesWith(made->getResults());
    op->erase();
  }

  Operation *modelOf(Operation *op) {
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      auto predicate = compare.getPredicate();
      return make.model("llvm.icmp", int64_t(predicate), [&](Operation *op) {
        cast<LLVM::ICmpOp>(op).setPredicate(LLVM::ICmpPredicate(predicate));
      });
    }
    if (auto branch = dyn_cast<cf::CondBranchOp>(op))
      return make.conditional("llvm.cond_br", branch.getTrueOperands().size(), branch.getFalseOperands().size());
    if (auto index = dyn_cast<arith::IndexCastOp>(op)) {
      if (op->getOperand(0).getType() == type(index.getType())) return nullptr;
      return make.model(op->getOperand(0).getType() == i64 ? "llvm.trunc" : "llvm.sext", 0);
    }
    static constexpr std::pair<const char *, const char *> names[] = {
        {"arith.addi", "llvm.add"},     {"arith.muli", "llvm.mul"},       {"arith.subi", "llvm.sub"},
        {"arith.xori", "llvm.xor"},     {"arith.mulf", "llvm.fmul"},      {"arith.addf", "llvm.fadd"},
        {"arith.sitofp", "llvm.sitofp"}, {"arith.select", "llvm.select"},  {"cf.br", "llvm.br"},
        {"func.return", "llvm.return"}, {"arith.constant", "llvm.mlir.constant"}};
    // Names are looked up once each.
    const void *id = op->getName().getAsOpaquePointer();
    auto known = byName.find(id);
    if (known != byName.end()) return known->second;
    for (auto [from, to] : names)
      if (op->getName().getStringRef() == from) return byName[id] = make.model(to, 0);
    llvm_unreachable("an op of the bench");
  }

  llvm::DenseMap<const void *, Operation *> byName;
};

class ToBlocks {
public:
  explicit ToBlocks(MLIRContext *cx) : make(cx), i1(IntegerType::get(cx, 1)) {
    branch = make.model("cf.br", 0);
    conditional = make.conditional("cf.cond_br", 0, 0);
    add = make.model("arith.addi", 0);
    less = make.model("arith.cmpi", 0,
                      [](Operation *op) { cast<arith::CmpIOp>(op).setPredicate(arith::CmpIPredicate::slt); });
  }

  void function(func::FuncOp func) {
    // The blocks of a converted op follow the one that ends before it.
    for (Block *block = &func.getBody().front(); block; block = block->getNextNode())
      for (Operation &op : *block) {
        Block *before = nullptr;
        if (auto loop = dyn_cast<scf::ForOp>(op)) before = convertFor(loop);
        else if (auto choice = dyn_cast<scf::IfOp>(op)) before = convertIf(choice);
        if (before) {
          block = before;
          break;
        }
      }
  }

private:
  Maker make;
  Type i1;
  Operation *branch, *conditional, *add, *less;

  // The block that ends before the op, as below.
  Block *convertFor(scf::ForOp op) {
    Location loc = op.getLoc();
    auto [before, rest] = splitAt(op);
    auto [head, body] = splitAt(&op.getBody()->front());
    Operation *end = &body->back();
    Operation *goesOn = make.create(less, loc, {head->getArgument(0), op.getUpperBound()}, i1);
    append(head, goesOn);
    append(head, make.create(conditional, loc, goesOn->getResult(0), {}, {body, rest}));
    Operation *next = make.create(add, loc, {head->getArgument(0), op.getStep()}, op.getStep().getType());
    insertBefore(end, next);
    SmallVector<Value, 4> values(next->getResults());
    llvm::append_range(values, end->getOperands());
    insertBefore(end, make.create(branch, end->getLoc(), values, {}, head));
    end->erase();
    before->getParent()->getBlocks().splice(rest->getIterator(), op.getRegion().getBlocks());
    values.assign({op.getLowerBound()});
    llvm::append_range(values, op.getInitArgs());
    append(before, make.create(branch, loc, values, {}, head));
    op->replaceAllUsesWith(head->getArguments().drop_front());
    op->erase();
    return before;
  }

  Block *convertIf(scf::IfOp op) {
    Location loc = op.getLoc();
    auto [before, rest] = splitAt(op);
    Region *region = before->getParent();
    auto *join = new Block();
    for (Type ty : op->getResultTypes()) join->addArgument(ty, loc);
    region->getBlocks().insert(rest->getIterator(), join);
    append(join, make.create(branch, loc, {}, {}, rest));
    Block *arms[] = {op.thenBlock(), op.elseBlock()};
    for (Block *arm : arms) {
      Operation *end = &arm->back();
      append(arm, make.create(branch, end->getLoc(), end->getOperands(), {}, join));
      end->erase();
    }
    for (Region &arm : op->getRegions()) region->getBlocks().splice(join->getIterator(), arm.getBlocks());
    append(before, make.create(conditional, loc, op.getCondition(), {}, arms));
    op->replaceAllUsesWith(join->getArguments());
    op->erase();
    return before;
  }
};

} // namespace

extern "C" void monopour_shim_floor(MlirOperation module, bool isStructured) {
  Operation *at = unwrap(module);
  ToLlvm toLlvm(at->getContext());
  ToBlocks toBlocks(at->getContext());
  for (Operation &op : llvm::make_early_inc_range(at->getRegion(0).front())) {
    auto func = dyn_cast<func::FuncOp>(op);
    if (!func) continue;
    if (isStructured)
      toBlocks.function(func);
    else
      toLlvm.function(func);
  }
}
