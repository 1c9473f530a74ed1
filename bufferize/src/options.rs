//! Options of One-Shot Bufferize, named as upstream's pass names them.

pub use monopour_analysis::one_shot::Strategy;
use monopour_ir::bufferizable::InterfaceOptions;
use monopour_ir::{Diagnostic, Diagnostics};

/// The memref types of a function's signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FunctionBoundaryTypeConversion {
    /// Arguments with dynamic strides and offset; results with the layout that the body infers.
    #[default]
    Infer,
    /// Row-major, contiguous, offset 0.
    Identity,
    /// Dynamic strides and offset on both sides.
    FullyDynamic,
}

/// The layout of memrefs of unknown origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownTypeConversion {
    /// Dynamic strides and offset.
    #[default]
    FullyDynamic,
    /// Row-major, contiguous, offset 0.
    Identity,
}

/// The order in which the analysis visits operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnalysisHeuristic {
    /// Last to first.
    #[default]
    BottomUp,
    /// First to last.
    TopDown,
    /// From each terminator backwards.
    BottomUpFromTerminators,
    /// Shuffled by the seed.
    Fuzzer,
}

/// Options of [`crate::run_one_shot`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `allow-return-allocs-from-loops`: a loop may yield another buffer than its iteration argument.
    pub allow_return_allocs_from_loops: bool,
    /// `allow-unknown-ops`: leave operations without a model on tensors.
    pub allow_unknown_ops: bool,
    /// `analysis-fuzzer-seed`.
    pub analysis_fuzzer_seed: u64,
    /// `analysis-heuristic`.
    pub analysis_heuristic: AnalysisHeuristic,
    /// `bufferize-function-boundaries`: signatures, returns and calls take part.
    pub bufferize_function_boundaries: bool,
    /// `check-parallel-regions`: each iteration owns the buffers that it writes and reads.
    pub check_parallel_regions: bool,
    /// `copy-before-write`: analyse nothing, copy every write.
    pub copy_before_write: bool,
    /// `dialect-filter`: operations of these dialects only; empty for all.
    pub dialect_filter: Vec<String>,
    /// `dump-alias-sets`.
    pub dump_alias_sets: bool,
    /// `print-conflicts`.
    pub print_conflicts: bool,
    /// `test-analysis-only`: annotate the decisions, rewrite nothing.
    pub test_analysis_only: bool,
    /// `no-analysis-func-filter`: functions that are not analysed.
    pub no_analysis_func_filter: Vec<String>,
    /// `function-boundary-type-conversion`.
    pub function_boundary_type_conversion: FunctionBoundaryTypeConversion,
    /// `unknown-type-conversion`: the layout of a memref for a tensor of unknown origin.
    pub unknown_type_conversion: UnknownTypeConversion,
    /// `must-infer-memory-space`: there is no default memory space.
    pub must_infer_memory_space: bool,
    /// `use-encoding-for-memory-space`: a tensor's encoding is its memory space.
    pub use_encoding_for_memory_space: bool,
    /// `buffer-alignment`, in bytes; 0 leaves it out.
    pub buffer_alignment_bytes: u64,
    /// Behaviour beyond upstream: copies of a slice onto itself are left out.
    pub extensions: bool,
    /// `strategy`: how much is known about the memory that uses touch. [`Strategy::Minimal`] implies the extensions.
    pub strategy: Strategy,
    /// Arguments of public functions are not writable unless they carry `monopour.donate`.
    pub entry_abi: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allow_return_allocs_from_loops: false,
            allow_unknown_ops: false,
            analysis_fuzzer_seed: 0,
            analysis_heuristic: AnalysisHeuristic::BottomUp,
            bufferize_function_boundaries: false,
            check_parallel_regions: true,
            copy_before_write: false,
            dialect_filter: vec![],
            dump_alias_sets: false,
            print_conflicts: false,
            test_analysis_only: false,
            no_analysis_func_filter: vec![],
            function_boundary_type_conversion: FunctionBoundaryTypeConversion::Infer,
            unknown_type_conversion: UnknownTypeConversion::FullyDynamic,
            must_infer_memory_space: false,
            use_encoding_for_memory_space: false,
            buffer_alignment_bytes: 64,
            extensions: false,
            strategy: Strategy::Greedy,
            entry_abi: false,
        }
    }
}

impl Options {
    /// The options for upstream's interface.
    pub(crate) fn for_interface(&self) -> InterfaceOptions {
        InterfaceOptions {
            allow_unknown_ops: self.allow_unknown_ops,
            function_boundaries: self.bufferize_function_boundaries,
            identity_layouts: self.unknown_type_conversion == UnknownTypeConversion::Identity,
            must_infer_memory_space: self.must_infer_memory_space,
            encoding_is_memory_space: self.use_encoding_for_memory_space,
            alignment: u32::try_from(self.buffer_alignment_bytes).unwrap_or(u32::MAX),
        }
    }
    /// Whether these options ask for more than upstream's decisions.
    pub(crate) fn is_minimal(&self) -> bool {
        self.strategy == Strategy::Minimal && !self.copy_before_write
    }
    /// The options of `compile`: function boundaries of identity layout, loops may return allocations, the entry's ABI,
    /// encodings as memory spaces, and the extensions.
    pub fn pipeline() -> Self {
        Self {
            allow_return_allocs_from_loops: true,
            bufferize_function_boundaries: true,
            function_boundary_type_conversion: FunctionBoundaryTypeConversion::Identity,
            use_encoding_for_memory_space: true,
            extensions: true,
            strategy: Strategy::Minimal,
            entry_abi: true,
            ..Self::default()
        }
    }

    /// The effective options: a dialect filter without `func` leaves signatures unchanged, despite
    /// function boundaries.
    pub(crate) fn effective(&self) -> Self {
        let has_functions = self.dialect_filter.is_empty() || self.dialect_filter.iter().any(|d| d == "func");
        let bufferize_function_boundaries = self.bufferize_function_boundaries && has_functions;
        let extensions = self.extensions || self.strategy == Strategy::Minimal;
        Self { bufferize_function_boundaries, extensions, ..self.clone() }
    }

    /// Refuses options that exclude each other, with upstream's words.
    pub(crate) fn check(&self) -> Result<(), Diagnostics> {
        let testing = [(self.dump_alias_sets, "dump-alias-sets"), (self.print_conflicts, "print-conflicts")];
        if let Some((_, name)) = testing.iter().find(|(set, _)| *set && !self.test_analysis_only) {
            return Err(refuse(format!("Invalid option: '{name}' requires 'test-analysis-only'")));
        }
        if self.copy_before_write && self.test_analysis_only {
            return Err(refuse(
                "Invalid option: 'copy-before-write' cannot be used with 'test-analysis-only'".to_owned(),
            ));
        }
        if !self.no_analysis_func_filter.is_empty() && !self.bufferize_function_boundaries {
            return Err(refuse(
                "Invalid option: 'no-analysis-func-filter' requires 'bufferize-function-boundaries'".to_owned(),
            ));
        }
        if self.must_infer_memory_space && self.use_encoding_for_memory_space {
            return Err(refuse(
                "only one of 'must-infer-memory-space' and 'use-encoding-for-memory-space' are allowed in \
                 one-shot-bufferize"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}

fn refuse(message: String) -> Diagnostics {
    Diagnostic::global("B0100", message).with_help("leave the option out").into()
}
