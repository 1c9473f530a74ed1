//! Names of the ops that phases read and make, by dialect: stated once, so that a misspelt one does not compile.

macro_rules! names {
    ($($dialect:ident { $($name:ident = $text:literal)* })*) => {
        $(
            #[doc = concat!("Ops of the dialect `", stringify!($dialect), "`.")]
            pub mod $dialect {
                $(
                    #[doc = concat!("`", $text, "`")]
                    pub const $name: &str = $text;
                )*
            }
        )*

        #[cfg(test)]
        const ALL: &[&str] = &[$($($text),*),*];
    };
}

names! {
    affine {
        APPLY = "affine.apply"
        FOR = "affine.for"
        IF = "affine.if"
        MAX = "affine.max"
        MIN = "affine.min"
        PARALLEL = "affine.parallel"
        STORE = "affine.store"
        YIELD = "affine.yield"
    }
    arith {
        ADDF = "arith.addf"
        ADDI = "arith.addi"
        ADDUI_EXTENDED = "arith.addui_extended"
        ANDI = "arith.andi"
        BITCAST = "arith.bitcast"
        CEILDIVSI = "arith.ceildivsi"
        CEILDIVUI = "arith.ceildivui"
        CMPF = "arith.cmpf"
        CMPI = "arith.cmpi"
        CONSTANT = "arith.constant"
        DIVF = "arith.divf"
        DIVSI = "arith.divsi"
        DIVUI = "arith.divui"
        EXTF = "arith.extf"
        EXTSI = "arith.extsi"
        EXTUI = "arith.extui"
        FLOORDIVSI = "arith.floordivsi"
        FPTOSI = "arith.fptosi"
        FPTOUI = "arith.fptoui"
        INDEX_CAST = "arith.index_cast"
        INDEX_CASTUI = "arith.index_castui"
        MAXIMUMF = "arith.maximumf"
        MAXNUMF = "arith.maxnumf"
        MAXSI = "arith.maxsi"
        MAXUI = "arith.maxui"
        MINIMUMF = "arith.minimumf"
        MINNUMF = "arith.minnumf"
        MINSI = "arith.minsi"
        MINUI = "arith.minui"
        MULF = "arith.mulf"
        MULI = "arith.muli"
        MULSI_EXTENDED = "arith.mulsi_extended"
        MULUI_EXTENDED = "arith.mului_extended"
        NEGF = "arith.negf"
        ORI = "arith.ori"
        REMF = "arith.remf"
        REMSI = "arith.remsi"
        REMUI = "arith.remui"
        SELECT = "arith.select"
        SHLI = "arith.shli"
        SHRSI = "arith.shrsi"
        SHRUI = "arith.shrui"
        SITOFP = "arith.sitofp"
        SUBF = "arith.subf"
        SUBI = "arith.subi"
        TRUNCF = "arith.truncf"
        TRUNCI = "arith.trunci"
        UITOFP = "arith.uitofp"
        XORI = "arith.xori"
    }
    r#async {
        EXECUTE = "async.execute"
    }
    bufferization {
        ALLOC_TENSOR = "bufferization.alloc_tensor"
        CLONE = "bufferization.clone"
        DEALLOC = "bufferization.dealloc"
        DEALLOC_TENSOR = "bufferization.dealloc_tensor"
        MATERIALIZE_IN_DESTINATION = "bufferization.materialize_in_destination"
        TO_BUFFER = "bufferization.to_buffer"
        TO_TENSOR = "bufferization.to_tensor"
    }
    builtin {
        MODULE = "builtin.module"
        UNREALIZED_CONVERSION_CAST = "builtin.unrealized_conversion_cast"
    }
    cf {
        ASSERT = "cf.assert"
        BR = "cf.br"
        COND_BR = "cf.cond_br"
        SWITCH = "cf.switch"
    }
    func {
        CALL = "func.call"
        CALL_INDIRECT = "func.call_indirect"
        CONSTANT = "func.constant"
        FUNC = "func.func"
        RETURN = "func.return"
    }
    gpu {
        BARRIER = "gpu.barrier"
        BLOCK_ID = "gpu.block_id"
        GRID_DIM = "gpu.grid_dim"
        LANE_ID = "gpu.lane_id"
        LAUNCH = "gpu.launch"
        SHUFFLE = "gpu.shuffle"
        SUBGROUP_BROADCAST = "gpu.subgroup_broadcast"
        SUBGROUP_ID = "gpu.subgroup_id"
        SUBGROUP_MMA_COMPUTE = "gpu.subgroup_mma_compute"
        SUBGROUP_MMA_CONSTANT_MATRIX = "gpu.subgroup_mma_constant_matrix"
        SUBGROUP_MMA_ELEMENTWISE = "gpu.subgroup_mma_elementwise"
        SUBGROUP_MMA_EXTRACT_THREAD_LOCAL = "gpu.subgroup_mma_extract_thread_local"
        SUBGROUP_MMA_INSERT_THREAD_LOCAL = "gpu.subgroup_mma_insert_thread_local"
        SUBGROUP_MMA_LOAD_MATRIX = "gpu.subgroup_mma_load_matrix"
        SUBGROUP_MMA_STORE_MATRIX = "gpu.subgroup_mma_store_matrix"
        SUBGROUP_REDUCE = "gpu.subgroup_reduce"
        SUBGROUP_SIZE = "gpu.subgroup_size"
        TERMINATOR = "gpu.terminator"
        THREAD_ID = "gpu.thread_id"
    }
    index {
        MUL = "index.mul"
        REMU = "index.remu"
    }
    linalg {
        BATCH_MATMUL = "linalg.batch_matmul"
        BROADCAST = "linalg.broadcast"
        CONV_1D = "linalg.conv_1d"
        CONV_2D = "linalg.conv_2d"
        COPY = "linalg.copy"
        ELEMENTWISE = "linalg.elementwise"
        FILL = "linalg.fill"
        GENERIC = "linalg.generic"
        INDEX = "linalg.index"
        MAP = "linalg.map"
        MATMUL = "linalg.matmul"
        PACK = "linalg.pack"
        SOFTMAX = "linalg.softmax"
        TRANSPOSE = "linalg.transpose"
        UNPACK = "linalg.unpack"
        WINOGRAD_FILTER_TRANSFORM = "linalg.winograd_filter_transform"
        WINOGRAD_INPUT_TRANSFORM = "linalg.winograd_input_transform"
        WINOGRAD_OUTPUT_TRANSFORM = "linalg.winograd_output_transform"
        YIELD = "linalg.yield"
    }
    llvm {
        BITCAST = "llvm.bitcast"
        CALL = "llvm.call"
        CALL_INTRINSIC = "llvm.call_intrinsic"
        FUNC = "llvm.func"
        GETELEMENTPTR = "llvm.getelementptr"
        INTTOPTR = "llvm.inttoptr"
        LOAD = "llvm.load"
        RETURN = "llvm.return"
        STORE = "llvm.store"
        TRUNC = "llvm.trunc"
    }
    math {
        ABSF = "math.absf"
        ABSI = "math.absi"
        ACOS = "math.acos"
        ACOSH = "math.acosh"
        ASIN = "math.asin"
        ASINH = "math.asinh"
        ATAN = "math.atan"
        ATAN2 = "math.atan2"
        ATANH = "math.atanh"
        CBRT = "math.cbrt"
        CEIL = "math.ceil"
        CLAMPF = "math.clampf"
        COPYSIGN = "math.copysign"
        COS = "math.cos"
        COSH = "math.cosh"
        CTLZ = "math.ctlz"
        CTPOP = "math.ctpop"
        CTTZ = "math.cttz"
        ERF = "math.erf"
        ERFC = "math.erfc"
        EXP = "math.exp"
        EXP2 = "math.exp2"
        EXPM1 = "math.expm1"
        FLOOR = "math.floor"
        FMA = "math.fma"
        FPOWI = "math.fpowi"
        IPOWI = "math.ipowi"
        ISFINITE = "math.isfinite"
        ISINF = "math.isinf"
        ISNAN = "math.isnan"
        ISNORMAL = "math.isnormal"
        LOG = "math.log"
        LOG10 = "math.log10"
        LOG1P = "math.log1p"
        LOG2 = "math.log2"
        POWF = "math.powf"
        ROUND = "math.round"
        ROUNDEVEN = "math.roundeven"
        RSQRT = "math.rsqrt"
        SIN = "math.sin"
        SINCOS = "math.sincos"
        SINH = "math.sinh"
        SQRT = "math.sqrt"
        TAN = "math.tan"
        TANH = "math.tanh"
        TRUNC = "math.trunc"
    }
    memref {
        ALLOC = "memref.alloc"
        ALLOCA = "memref.alloca"
        ALLOCA_SCOPE = "memref.alloca_scope"
        ALLOCA_SCOPE_RETURN = "memref.alloca_scope.return"
        ASSUME_ALIGNMENT = "memref.assume_alignment"
        CAST = "memref.cast"
        COLLAPSE_SHAPE = "memref.collapse_shape"
        COPY = "memref.copy"
        DEALLOC = "memref.dealloc"
        DIM = "memref.dim"
        EXPAND_SHAPE = "memref.expand_shape"
        EXTRACT_ALIGNED_POINTER_AS_INDEX = "memref.extract_aligned_pointer_as_index"
        EXTRACT_STRIDED_METADATA = "memref.extract_strided_metadata"
        GET_GLOBAL = "memref.get_global"
        GLOBAL = "memref.global"
        LOAD = "memref.load"
        MEMORY_SPACE_CAST = "memref.memory_space_cast"
        PREFETCH = "memref.prefetch"
        RANK = "memref.rank"
        REALLOC = "memref.realloc"
        REINTERPRET_CAST = "memref.reinterpret_cast"
        RESHAPE = "memref.reshape"
        STORE = "memref.store"
        SUBVIEW = "memref.subview"
        TRANSPOSE = "memref.transpose"
        VIEW = "memref.view"
    }
    ml_program {
        GLOBAL = "ml_program.global"
        GLOBAL_LOAD = "ml_program.global_load"
        GLOBAL_LOAD_CONST = "ml_program.global_load_const"
        GLOBAL_STORE = "ml_program.global_store"
    }
    scf {
        CONDITION = "scf.condition"
        EXECUTE_REGION = "scf.execute_region"
        FOR = "scf.for"
        FORALL = "scf.forall"
        FORALL_IN_PARALLEL = "scf.forall.in_parallel"
        IF = "scf.if"
        INDEX_SWITCH = "scf.index_switch"
        PARALLEL = "scf.parallel"
        REDUCE = "scf.reduce"
        REDUCE_RETURN = "scf.reduce.return"
        WHILE = "scf.while"
        YIELD = "scf.yield"
    }
    shape {
        ASSUMING = "shape.assuming"
        ASSUMING_YIELD = "shape.assuming_yield"
    }
    sparse_tensor {
        ASSEMBLE = "sparse_tensor.assemble"
        DISASSEMBLE = "sparse_tensor.disassemble"
        LOAD = "sparse_tensor.load"
    }
    tensor {
        BITCAST = "tensor.bitcast"
        CAST = "tensor.cast"
        COLLAPSE_SHAPE = "tensor.collapse_shape"
        CONCAT = "tensor.concat"
        DIM = "tensor.dim"
        EMPTY = "tensor.empty"
        EXPAND_SHAPE = "tensor.expand_shape"
        EXTRACT = "tensor.extract"
        EXTRACT_SLICE = "tensor.extract_slice"
        FROM_ELEMENTS = "tensor.from_elements"
        GATHER = "tensor.gather"
        GENERATE = "tensor.generate"
        INSERT = "tensor.insert"
        INSERT_SLICE = "tensor.insert_slice"
        PAD = "tensor.pad"
        PARALLEL_INSERT_SLICE = "tensor.parallel_insert_slice"
        RANK = "tensor.rank"
        RESHAPE = "tensor.reshape"
        SCATTER = "tensor.scatter"
        SPLAT = "tensor.splat"
        YIELD = "tensor.yield"
    }
    ub {
        POISON = "ub.poison"
    }
    tosa {
        BITWISE_AND = "tosa.bitwise_and"
        BITWISE_NOT = "tosa.bitwise_not"
        BITWISE_OR = "tosa.bitwise_or"
        BITWISE_XOR = "tosa.bitwise_xor"
        CAST = "tosa.cast"
        CAST_FROM_BLOCK_SCALED = "tosa.cast_from_block_scaled"
        CAST_TO_BLOCK_SCALED = "tosa.cast_to_block_scaled"
        CONCAT = "tosa.concat"
        COND_IF = "tosa.cond_if"
        CONST = "tosa.const"
        CUSTOM = "tosa.custom"
        EQUAL = "tosa.equal"
        FFT2D = "tosa.fft2d"
        GATHER = "tosa.gather"
        IDENTITY = "tosa.identity"
        MATMUL_T_BLOCK_SCALED = "tosa.matmul_t_block_scaled"
        PAD = "tosa.pad"
        RESCALE = "tosa.rescale"
        RESHAPE = "tosa.reshape"
        REVERSE = "tosa.reverse"
        SCATTER = "tosa.scatter"
        SELECT = "tosa.select"
        SLICE = "tosa.slice"
        TILE = "tosa.tile"
        TRANSPOSE = "tosa.transpose"
        VARIABLE = "tosa.variable"
        VARIABLE_READ = "tosa.variable_read"
        VARIABLE_WRITE = "tosa.variable_write"
        WHILE_LOOP = "tosa.while_loop"
        YIELD = "tosa.yield"
    }
    vector {
        BITCAST = "vector.bitcast"
        BROADCAST = "vector.broadcast"
        CONSTANT_MASK = "vector.constant_mask"
        CREATE_MASK = "vector.create_mask"
        EXTRACT = "vector.extract"
        EXTRACT_STRIDED_SLICE = "vector.extract_strided_slice"
        FMA = "vector.fma"
        FROM_ELEMENTS = "vector.from_elements"
        GATHER = "vector.gather"
        INSERT = "vector.insert"
        LOAD = "vector.load"
        MASK = "vector.mask"
        SCATTER = "vector.scatter"
        SHUFFLE = "vector.shuffle"
        STEP = "vector.step"
        STORE = "vector.store"
        TRANSFER_READ = "vector.transfer_read"
        TRANSFER_WRITE = "vector.transfer_write"
        YIELD = "vector.yield"
    }
}

/// Discardable attributes of upstream's dialects.
pub mod attributes {
    /// Attributes of the dialect `bufferization`.
    pub mod bufferization {
        /// The memory access of a callee to an argument: `read`, `write`, `read-write` or `none`.
        pub const ACCESS: &str = "bufferization.access";
        /// The layout map of an argument's buffer.
        pub const BUFFER_LAYOUT: &str = "bufferization.buffer_layout";
        /// Excludes an allocation from deallocation.
        pub const MANUAL_DEALLOCATION: &str = "bufferization.manual_deallocation";
        /// Whether an argument's buffer may be written.
        pub const WRITABLE: &str = "bufferization.writable";
    }
    /// Attributes of the dialect `tosa`.
    pub mod tosa {
        /// The name of an argument or result of a function in the flatbuffer.
        pub const TENSOR_NAME: &str = "tosa.tensor_name";
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_name_is_an_op_of_mlir() {
        let cx = crate::Context::new();
        // A dialect is loaded where a source or a pass names it.
        for name in super::ALL {
            cx.to_melior().get_or_load_dialect(name.split('.').next().expect("a name has a dialect"));
        }
        let unknown: Vec<_> = super::ALL.iter().filter(|name| !cx.is_registered(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
