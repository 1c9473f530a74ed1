// Vectors whose lane count is no power of two; see widen.cpp.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

// Splits loop-carried arrays of vectors into their rows.
void monopourSplitArrayPhis(llvm::Module &module);

// Rewrites every function of `module` for `machine`.
void monopourWidenVectors(llvm::Module &module, llvm::TargetMachine &machine);
