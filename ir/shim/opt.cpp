// mlir-opt's main, with passes of ours registered before upstream's, under upstream's names and TypeIDs.
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Conversion/BufferizationToMemRef/BufferizationToMemRef.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

#ifdef MONOPOUR_TEST_DIALECT
// Of libMLIRTestDialect, which is installed without headers.
namespace test {
void registerTestDialect(DialectRegistry &registry);
}
#endif

// These mirror the #[repr(C)] types of opt.rs. Everything they point to lives until the process ends.
struct OptionSpec {
  MlirStringRef name, description, initial;
  int kind; // 0 flag, 1 number, 2 text, 3 list, 4 choice
  const MlirStringRef *choices;
  size_t numChoices;
};
struct PassSpec {
  MlirStringRef argument, description;
  const OptionSpec *options;
  size_t numOptions;
};
// Runs pass `index` on the op; `values` holds one text per option. False when the pass fails.
using RunFn = bool (*)(size_t index, MlirOperation op, const MlirStringRef *values);
// Whether the source may be parsed; reports why not.
using CheckFn = bool (*)(MlirStringRef source, MlirStringRef file);

namespace {
// The enum that lets LLVM's option parser check a choice; the values are positions among the choices.
enum class Choice : unsigned {};

std::unique_ptr<Pass> createUpstream(StringRef argument) {
  using Create = std::unique_ptr<Pass> (*)();
  static const std::pair<StringRef, Create> table[] = {
      {"one-shot-bufferize", [] { return bufferization::createOneShotBufferizePass(); }},
      {"ownership-based-buffer-deallocation",
       [] { return bufferization::createOwnershipBasedBufferDeallocationPass(); }},
      {"buffer-deallocation-simplification", [] { return bufferization::createBufferDeallocationSimplificationPass(); }},
      {"bufferization-lower-deallocations", [] { return bufferization::createLowerDeallocationsPass(); }},
      {"optimize-allocation-liveness", [] { return bufferization::createOptimizeAllocationLivenessPass(); }},
      {"eliminate-empty-tensors", [] { return bufferization::createEmptyTensorEliminationPass(); }},
      {"empty-tensor-to-alloc-tensor", [] { return bufferization::createEmptyTensorToAllocTensorPass(); }},
      {"drop-equivalent-buffer-results", [] { return bufferization::createDropEquivalentBufferResultsPass(); }},
      {"buffer-results-to-out-params", [] { return bufferization::createBufferResultsToOutParamsPass(); }},
      {"buffer-hoisting", [] { return bufferization::createBufferHoistingPass(); }},
      {"buffer-loop-hoisting", [] { return bufferization::createBufferLoopHoistingPass(); }},
      {"promote-buffers-to-stack", [] { return bufferization::createPromoteBuffersToStackPass(); }},
      {"expand-realloc", [] { return memref::createExpandReallocPass(); }},
      {"convert-bufferization-to-memref", [] { return createConvertBufferizationToMemRefPass(); }},
  };
  for (const auto &[name, create] : table)
    if (name == argument) return create();
  return nullptr;
}

class OverridePass : public Pass {
public:
  // `upstream` is null for a pass that only we have; `id` is its TypeID then.
  OverridePass(const PassSpec &spec, size_t index, RunFn run, std::shared_ptr<Pass> upstream, TypeID id)
      : Pass(upstream ? upstream->getTypeID() : id, upstream ? upstream->getOpName() : std::nullopt), spec(spec),
        index(index), run(run), upstream(upstream) {
    for (size_t i = 0; i < spec.numOptions; ++i) declare(spec.options[i]);
  }
  // A copy declares the same options; Pass::clone then copies their values.
  OverridePass(const OverridePass &other) : OverridePass(other.spec, other.index, other.run, other.upstream, other.getTypeID()) {}

  StringRef getArgument() const override { return unwrap(spec.argument); }
  StringRef getDescription() const override { return unwrap(spec.description); }
  StringRef getName() const override { return upstream ? upstream->getName() : getArgument(); }
  std::unique_ptr<Pass> clonePass() const override { return std::make_unique<OverridePass>(*this); }

  void getDependentDialects(DialectRegistry &registry) const override {
    if (upstream) upstream->getDependentDialects(registry);
    registry.insert<affine::AffineDialect, arith::ArithDialect, bufferization::BufferizationDialect, cf::ControlFlowDialect,
                    func::FuncDialect, linalg::LinalgDialect, memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect>();
  }

  void runOnOperation() override {
    std::vector<std::string> texts;
    for (const auto &read : readers) texts.push_back(read());
    std::vector<MlirStringRef> values;
    for (const std::string &text : texts) values.push_back(wrap(StringRef(text)));
    if (!run(index, wrap(getOperation()), values.data())) signalPassFailure();
  }

protected:
  bool canScheduleOn(RegisteredOperationName name) const override {
    return !getOpName() || *getOpName() == name.getStringRef();
  }

private:
  template <typename OptionT, typename... Args>
  OptionT *own(const OptionSpec &spec, Args &&...args) {
    auto option =
        std::make_shared<OptionT>(*this, unwrap(spec.name), llvm::cl::desc(unwrap(spec.description)), std::forward<Args>(args)...);
    options.push_back(option);
    return option.get();
  }

  void declare(const OptionSpec &spec) {
    StringRef initial = unwrap(spec.initial);
    switch (spec.kind) {
    case 0: {
      auto *option = own<Option<bool>>(spec, llvm::cl::init(initial == "1"));
      readers.push_back([option] { return std::string(option->getValue() ? "1" : "0"); });
      return;
    }
    case 1: {
      uint64_t value = 0;
      (void)initial.getAsInteger(10, value);
      auto *option = own<Option<uint64_t>>(spec, llvm::cl::init(value));
      readers.push_back([option] { return std::to_string(option->getValue()); });
      return;
    }
    case 2: {
      auto *option = own<Option<std::string>>(spec, llvm::cl::init(initial.str()));
      readers.push_back([option] { return option->getValue(); });
      return;
    }
    case 3: {
      auto *option = own<ListOption<std::string>>(spec);
      readers.push_back([option] { return llvm::join(option->begin(), option->end(), ","); });
      return;
    }
    default:
      declareChoice(spec, initial);
    }
  }

  void declareChoice(const OptionSpec &spec, StringRef initial) {
    auto *option = own<Option<Choice>>(spec);
    for (size_t i = 0; i < spec.numChoices; ++i) {
      StringRef name = unwrap(spec.choices[i]);
      option->getParser().addLiteralOption(name, Choice(i), "");
      if (name == initial) option->setInitialValue(Choice(i));
    }
    const MlirStringRef *choices = spec.choices;
    readers.push_back([option, choices] { return unwrap(choices[unsigned(option->getValue())]).str(); });
  }

  const PassSpec &spec;
  size_t index;
  RunFn run;
  // Provides the parts that must stay upstream's: TypeID, name, the op that the pass runs on. Null if upstream has no such pass.
  std::shared_ptr<Pass> upstream;
  std::vector<std::shared_ptr<void>> options;
  std::vector<std::function<std::string()>> readers;
};

// Transform ops call upstream's bufferization, not a pass: reports that before the interpreter runs.
class TransformRemarks : public PassInstrumentation {
  void runBeforePass(Pass *pass, Operation *op) override {
    if (pass->getArgument() != "transform-interpreter") return;
    op->walk([](Operation *inner) {
      StringRef name = inner->getName().getStringRef();
      if (name == "transform.bufferization.one_shot_bufferize" || name == "transform.bufferization.eliminate_empty_tensors" ||
          name == "transform.structured.bufferize_to_allocation" || name == "transform.structured.eliminate_empty_tensors")
        emitRemark(inner->getLoc()) << "runs upstream's bufferization, not monopour's";
    });
  }
};

// As mlir-opt's handling of its parsed command line, with one more instrumentation.
LogicalResult optMain(int argc, char **argv, DialectRegistry &registry, CheckFn check) {
  llvm::InitLLVM init(argc, argv);
  auto [input, output] = registerAndParseCLIOptions(argc, argv, "monopour opt: mlir-opt with monopour's passes\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldListPasses()) {
    printRegisteredPasses();
    return success();
  }
  if (config.shouldShowDialects()) {
    llvm::outs() << "Available Dialects: ";
    llvm::interleave(registry.getDialectNames(), llvm::outs(), ",");
    llvm::outs() << "\n";
    return success();
  }
  // A file of expected diagnostics expects mlir-opt's only.
  if (!config.shouldVerifyDiagnostics())
    config.setPassPipelineSetupFn([inner = config](PassManager &pm) {
      pm.addInstrumentation(std::make_unique<TransformRemarks>());
      return inner.setupPassPipeline(pm);
    });
  std::string error;
  auto file = openInputFile(input, &error);
  if (file && !check(wrap(file->getBuffer()), wrap(StringRef(input)))) return failure();
  auto out = file ? openOutputFile(output, &error) : nullptr;
  if (!out) {
    llvm::errs() << error << "\n";
    return failure();
  }
  if (failed(MlirOptMain(out->os(), std::move(file), registry, config))) return failure();
  out->keep();
  return success();
}
} // namespace

extern "C" {

// Must come before upstream's passes are registered: the first registration of a name wins.
void monopour_shim_register_override(const PassSpec *spec, size_t index, RunFn run) {
  // Registered passes live until the process ends, and so does the name of one that upstream lacks.
  auto *id = new SelfOwningTypeID();
  registerPass([spec, index, run, id]() -> std::unique_ptr<Pass> {
    return std::make_unique<OverridePass>(*spec, index, run, createUpstream(unwrap(spec->argument)), *id);
  });
}

// Upstream's pipelines, of whatever passes are registered under their names. Must come before upstream's are registered, too.
void monopour_shim_register_pipelines() {
  using Options = bufferization::BufferDeallocationPipelineOptions;
  PassPipelineRegistration<Options>(
      "buffer-deallocation-pipeline", "monopour: frees every allocation, from expand-realloc to bufferization-lower-deallocations",
      [](OpPassManager &pm, const Options &options) {
        std::string dynamic = options.privateFunctionDynamicOwnership ? "true" : "false";
        std::string text = "expand-realloc{emit-deallocs=false},canonicalize,ownership-based-buffer-deallocation{"
                           "private-function-dynamic-ownership=" + dynamic +
                           "},canonicalize,buffer-deallocation-simplification,bufferization-lower-deallocations,cse,canonicalize";
        if (failed(parsePassPipeline(text, pm))) llvm::report_fatal_error("the passes of the pipeline are registered");
      });
}

int monopour_shim_opt_main(int argc, char **argv, CheckFn check) {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  registerAllGPUToLLVMIRTranslations(registry);
#ifdef MONOPOUR_TEST_DIALECT
  test::registerTestDialect(registry);
#endif
  return asMainReturnCode(optMain(argc, argv, registry, check));
}

// Severity: 0 error, 1 warning, 2 remark.
void monopour_shim_emit_diagnostic(MlirLocation location, int severity, MlirStringRef message, const MlirLocation *noteLocations,
                        const MlirStringRef *notes, size_t numNotes) {
  Location loc = unwrap(location);
  InFlightDiagnostic diagnostic = severity == 0 ? emitError(loc) : severity == 1 ? emitWarning(loc) : emitRemark(loc);
  diagnostic << unwrap(message);
  for (size_t i = 0; i < numNotes; ++i) diagnostic.attachNote(unwrap(noteLocations[i])) << unwrap(notes[i]);
}
}
