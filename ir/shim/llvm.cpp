// LLVM behind MLIR: polynomial math on MLIR, then the llvm dialect to LLVM IR to object code for a named CPU.
// Every function is documented where Rust declares it (src/llvm.rs).
#include "widen.h"
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

// Declared one by one: the X86 and AArch64 back ends are the only ones wanted, and the headers' `All` would link every one.
extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMInitializeX86AsmParser();
void LLVMInitializeAArch64TargetInfo();
void LLVMInitializeAArch64Target();
void LLVMInitializeAArch64TargetMC();
void LLVMInitializeAArch64AsmPrinter();
void LLVMInitializeAArch64AsmParser();
}

namespace {

void initializeTargets() {
  static bool done = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
    return true;
  }();
  (void)done;
}

struct Sink {
  MlirStringCallback callback;
  void *user;
  void operator()(llvm::StringRef text) const { callback(mlirStringRefCreate(text.data(), text.size()), user); }
};

std::unique_ptr<llvm::TargetMachine> createMachine(const llvm::Triple &triple, llvm::StringRef cpu, llvm::StringRef features,
                                                   const Sink &message) {
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    message(error);
    return nullptr;
  }
  llvm::TargetOptions options;
  // a * b + c rounds once where the CPU has the instruction (docs/numerics.md).
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  // The loader maps one object without a dynamic linker: everything local is reached PC-relatively, and a call to the closed
  // table of imports goes through a stub that the loader places.
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(triple, cpu, features, options, llvm::Reloc::PIC_,
                                                                          llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive));
}

// Function attributes that MLIR does not set: the CPU, and that no function unwinds.
void setAttributes(llvm::Module &module, llvm::StringRef cpu, llvm::StringRef features, unsigned vectorBits) {
  for (llvm::Function &function : module) {
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (function.isDeclaration()) continue;
    // Some back ends fuse by the target's option, X86 by this flag on each instruction.
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (llvm::isa<llvm::FPMathOperator>(instruction)) instruction.setHasAllowContract(true);
    function.addFnAttr("target-cpu", cpu);
    if (!features.empty()) function.addFnAttr("target-features", features);
    // Without this LLVM splits 512-bit vectors on most CPUs that have them.
    if (vectorBits >= 512) {
      function.addFnAttr("prefer-vector-width", std::to_string(vectorBits));
      function.addFnAttr("min-legal-vector-width", std::to_string(vectorBits));
    }
  }
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  // Tiles are unrolled to registers already; LLVM would add whole task tiles as straight code, slow to compile.
  tuning.LoopUnrolling = false;
  llvm::PassBuilder builder(&machine, tuning);
  // Without a C library LLVM may generate calls of memcpy, memmove and memset only.
  llvm::TargetLibraryInfoImpl library(module.getTargetTriple());
  library.disableAllFunctions();
  for (llvm::LibFunc known : {llvm::LibFunc_memcpy, llvm::LibFunc_memmove, llvm::LibFunc_memset}) library.setAvailable(known);
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

} // namespace

extern "C" {

bool monopour_shim_approximate_math(MlirOperation root) {
  mlir::Operation *op = unwrap(root);
  mlir::RewritePatternSet patterns(op->getContext());
  mlir::populateMathPolynomialApproximationPatterns(patterns);
  // Success means "converged"; folding and constants are part of the driver.
  return mlir::succeeded(mlir::applyPatternsGreedily(op, std::move(patterns)));
}

// kind: 0 object, 1 assembly, 2 LLVM IR before optimisation, 3 LLVM IR after it.
bool monopour_shim_emit(MlirOperation moduleOp, MlirStringRef tripleText, MlirStringRef cpu, MlirStringRef features,
                        unsigned vectorBits, int kind, MlirStringCallback out, void *outUser, MlirStringCallback err, void *errUser) {
  initializeTargets();
  Sink output{out, outUser}, message{err, errUser};
  llvm::Triple triple(unwrap(tripleText));
  auto machine = createMachine(triple, unwrap(cpu), unwrap(features), message);
  if (!machine) return false;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = mlir::translateModuleToLLVMIR(unwrap(moduleOp), context, "monopour");
  if (!module) {
    message("translation to LLVM IR failed");
    return false;
  }
  module->setTargetTriple(triple);
  module->setDataLayout(machine->createDataLayout());
  setAttributes(*module, unwrap(cpu), unwrap(features), vectorBits);
  if (kind != 2) {
    monopourSplitArrayPhis(*module);
    optimize(*module, *machine);
    monopourWidenVectors(*module, *machine);
  }
  std::string text;
  llvm::raw_string_ostream problems(text);
  if (llvm::verifyModule(*module, &problems)) {
    message(text);
    return false;
  }
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  if (kind >= 2) {
    module->print(stream, nullptr);
  } else {
    llvm::legacy::PassManager passes;
    auto fileType = kind == 0 ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
    if (machine->addPassesToEmitFile(passes, stream, nullptr, fileType)) {
      message("the target emits no object files");
      return false;
    }
    passes.run(*module);
  }
  output(llvm::StringRef(bytes.data(), bytes.size()));
  return true;
}

}
