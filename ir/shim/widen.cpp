// Vectors whose lane count is no power of two, made fit for LLVM's code generation.
//
// Within a block the code generator widens <31 x float> to two registers, but from block to block it passes it as 31 scalars, and
// it loads and stores it in five pieces. Here such a value crosses blocks as <32 x float>, with lanes that nothing reads, and is
// loaded and stored under a constant mask where the CPU can. Run after the optimiser, which would narrow the values again.
//
// A vector of two dimensions is an array of vectors to LLVM, and one that a loop carries stays an array in many cases; it is split
// into its rows before the optimiser runs.
#include "widen.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace {

// The wide type of an odd vector type, or null.
FixedVectorType *widened(Type *type) {
  auto *vector = dyn_cast<FixedVectorType>(type);
  if (!vector || isPowerOf2_32(vector->getNumElements()) || vector->getScalarSizeInBits() < 8) return nullptr;
  return FixedVectorType::get(vector->getElementType(), PowerOf2Ceil(vector->getNumElements()));
}

unsigned lanesOf(Type *type) { return cast<FixedVectorType>(type)->getNumElements(); }

// `value` with its first lanes kept and poison after them.
Value *resize(IRBuilder<> &builder, Value *value, unsigned lanes) {
  SmallVector<int> mask(lanes, PoisonMaskElem);
  for (unsigned i = 0; i < std::min(lanes, lanesOf(value->getType())); ++i) mask[i] = i;
  return builder.CreateShuffleVector(value, mask);
}

class Widener {
public:
  Widener(Function &function, const TargetTransformInfo &target) : function(function), target(target) {}

  void run() {
    widenPhis();
    widenAcrossBlocks();
    widenMemory();
  }

private:
  Function &function;
  const TargetTransformInfo &target;
  // The wide form of a narrow value, where there is one.
  DenseMap<Value *, Value *> wideOf;

  Value *wide(IRBuilder<> &builder, Value *narrow) {
    auto known = wideOf.find(narrow);
    return known != wideOf.end() ? known->second : resize(builder, narrow, lanesOf(widened(narrow->getType())));
  }

  void widenPhis() {
    SmallVector<std::pair<PHINode *, PHINode *>> phis;
    for (BasicBlock &block : function)
      for (PHINode &phi : block.phis())
        if (FixedVectorType *type = widened(phi.getType()))
          phis.push_back({&phi, PHINode::Create(type, phi.getNumIncomingValues(), "", block.begin())});
    for (auto [phi, widePhi] : phis) {
      IRBuilder<> builder(phi->getParent(), phi->getParent()->getFirstInsertionPt());
      Value *narrow = resize(builder, widePhi, lanesOf(phi->getType()));
      wideOf[narrow] = widePhi;
      phi->replaceAllUsesWith(narrow);
    }
    for (auto [phi, widePhi] : phis) {
      for (auto [value, block] : zip(phi->incoming_values(), phi->blocks())) {
        IRBuilder<> builder(block->getTerminator());
        // Two edges from one block must bring one and the same value.
        int known = widePhi->getBasicBlockIndex(block);
        widePhi->addIncoming(known < 0 ? wide(builder, value) : widePhi->getIncomingValue(known), block);
      }
      phi->eraseFromParent();
    }
  }

  void widenAcrossBlocks() {
    SmallVector<Instruction *> crossing;
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (widened(instruction.getType()) && instruction.isUsedOutsideOfBlock(&block)) crossing.push_back(&instruction);
    for (Instruction *instruction : crossing) {
      std::optional<BasicBlock::iterator> after = instruction->getInsertionPointAfterDef();
      if (!after) continue;
      IRBuilder<> builder(instruction->getParent(), *after);
      Value *wideValue = wide(builder, instruction);
      MapVector<BasicBlock *, SmallVector<Use *>> uses;
      for (Use &use : instruction->uses()) {
        auto *user = cast<Instruction>(use.getUser());
        if (user->getParent() != instruction->getParent()) uses[user->getParent()].push_back(&use);
      }
      for (auto &[block, inBlock] : uses) {
        IRBuilder<> start(block, block->getFirstInsertionPt());
        Value *narrow = resize(start, wideValue, lanesOf(instruction->getType()));
        for (Use *use : inBlock) use->set(narrow);
      }
    }
  }

  static Constant *prefixMask(LLVMContext &context, unsigned lanes, unsigned set) {
    SmallVector<Constant *> bits;
    for (unsigned i = 0; i < lanes; ++i) bits.push_back(ConstantInt::getBool(context, i < set));
    return ConstantVector::get(bits);
  }

  void widenMemory() {
    SmallVector<Instruction *> accesses;
    for (BasicBlock &block : function)
      for (Instruction &instruction : block) {
        auto *load = dyn_cast<LoadInst>(&instruction);
        auto *store = dyn_cast<StoreInst>(&instruction);
        if (load && load->isSimple() && isLegalLoad(*load)) accesses.push_back(load);
        if (store && store->isSimple() && isLegalStore(*store)) accesses.push_back(store);
      }
    for (Instruction *access : accesses) {
      IRBuilder<> builder(access);
      if (auto *load = dyn_cast<LoadInst>(access)) {
        FixedVectorType *type = widened(load->getType());
        Constant *mask = prefixMask(load->getContext(), type->getNumElements(), lanesOf(load->getType()));
        Value *value = builder.CreateMaskedLoad(type, load->getPointerOperand(), load->getAlign(), mask);
        load->replaceAllUsesWith(resize(builder, value, lanesOf(load->getType())));
      } else {
        auto *store = cast<StoreInst>(access);
        Value *value = store->getValueOperand();
        FixedVectorType *type = widened(value->getType());
        Constant *mask = prefixMask(store->getContext(), type->getNumElements(), lanesOf(value->getType()));
        builder.CreateMaskedStore(resize(builder, value, type->getNumElements()), store->getPointerOperand(), store->getAlign(), mask);
      }
      access->eraseFromParent();
    }
  }

  bool isLegalLoad(LoadInst &load) {
    FixedVectorType *type = widened(load.getType());
    return type && target.isLegalMaskedLoad(type, load.getAlign(), 0);
  }

  bool isLegalStore(StoreInst &store) {
    FixedVectorType *type = widened(store.getValueOperand()->getType());
    return type && target.isLegalMaskedStore(type, store.getAlign(), 0);
  }
};

} // namespace

// Splits one phi of an array into one per element; the new ones may be arrays again.
static void splitPhi(PHINode &phi, SmallVectorImpl<PHINode *> &work) {
  auto *type = cast<ArrayType>(phi.getType());
  IRBuilder<> builder(phi.getParent(), phi.getParent()->getFirstInsertionPt());
  Value *whole = PoisonValue::get(type);
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    PHINode *part = PHINode::Create(type->getElementType(), phi.getNumIncomingValues(), "", phi.getIterator());
    for (auto [value, block] : zip(phi.incoming_values(), phi.blocks())) {
      IRBuilder<> end(block->getTerminator());
      int known = part->getBasicBlockIndex(block);
      part->addIncoming(known < 0 ? end.CreateExtractValue(value, i) : part->getIncomingValue(known), block);
    }
    whole = builder.CreateInsertValue(whole, part, i);
    if (part->getType()->isArrayTy()) work.push_back(part);
  }
  phi.replaceAllUsesWith(whole);
  phi.eraseFromParent();
}

void monopourSplitArrayPhis(Module &module) {
  SmallVector<PHINode *> work;
  for (Function &function : module)
    for (BasicBlock &block : function)
      for (PHINode &phi : block.phis())
        if (phi.getType()->isArrayTy()) work.push_back(&phi);
  while (!work.empty()) splitPhi(*work.pop_back_val(), work);
}

void monopourWidenVectors(Module &module, TargetMachine &machine) {
  for (Function &function : module) {
    if (function.isDeclaration()) continue;
    TargetTransformInfo target = machine.getTargetTransformInfo(function);
    Widener(function, target).run();
  }
}
