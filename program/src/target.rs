//! Targets: descriptions of machines, and requirements of variants.
//!
//! [`GpuDescription`] and [`CpuTarget`] describe machines; the compiler chooses kernels from them.
//! [`GpuTarget`] has the requirements of a compiled variant; [`GpuRequirements::missing`] lists those that a machine lacks.

use crate::kernel::GRID_ROW;
use serde::{Deserialize, Serialize};

/// The target of a variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A GPU through wgpu.
    Gpu(GpuTarget),
    /// The CPU, by native kernels.
    Cpu(CpuTarget),
}

impl Target {
    /// `gpu` or `cpu`, and the target's name.
    pub fn label(&self) -> String {
        match self {
            Target::Gpu(target) => format!("gpu:{}", target.name),
            Target::Cpu(target) => format!("cpu:{}", target.cpu),
        }
    }
}

/// A GPU variant's origin and requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuTarget {
    /// The adapter that it was tuned for, or `portable`.
    pub name: String,
    /// The only backend that it can run on; `None`: any.
    pub backend: Option<Backend>,
    /// Requirements on the device.
    pub requires: GpuRequirements,
}

/// A graphics API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// Vulkan.
    Vulkan,
    /// Metal.
    Metal,
    /// Direct3D 12.
    Dx12,
}

impl Backend {
    /// The lower-case name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Backend::Vulkan => "vulkan",
            Backend::Metal => "metal",
            Backend::Dx12 => "dx12",
        }
    }
}

/// The kind of an adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceType {
    /// A GPU with its own memory.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// A GPU of a virtual machine.
    Virtual,
    /// A software rasteriser on the CPU (lavapipe, WARP).
    Cpu,
    /// Unknown.
    #[default]
    Other,
}

/// An optional feature of a GPU device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuFeature {
    /// Subgroup operations in compute shaders.
    Subgroup,
    /// Subgroup barriers.
    SubgroupBarrier,
    /// 16-bit floats.
    F16,
    /// 64-bit floats.
    F64,
    /// 16-bit integers.
    Int16,
    /// 64-bit integers.
    Int64,
    /// Immediates (push constants).
    Immediates,
    /// Atomic addition on f32.
    Float32Atomic,
    /// Cooperative matrices of 16 rows and columns, of a subgroup: factors of f16, sums of f32.
    CooperativeMatrix,
    /// Timestamps at pass boundaries and between dispatches; never required by a kernel.
    Timestamps,
    /// SPIR-V without translation; never required by a kernel.
    PassthroughShaders,
}

impl GpuFeature {
    /// The name in JSON, such as `int64`.
    pub const fn as_str(self) -> &'static str {
        match self {
            GpuFeature::Subgroup => "subgroup",
            GpuFeature::SubgroupBarrier => "subgroup_barrier",
            GpuFeature::F16 => "f16",
            GpuFeature::F64 => "f64",
            GpuFeature::Int16 => "int16",
            GpuFeature::Int64 => "int64",
            GpuFeature::Immediates => "immediates",
            GpuFeature::Float32Atomic => "float32_atomic",
            GpuFeature::CooperativeMatrix => "cooperative_matrix",
            GpuFeature::Timestamps => "timestamps",
            GpuFeature::PassthroughShaders => "passthrough_shaders",
        }
    }
}

/// Limits of a GPU device; as requirements, the least sufficient ones (0: no need).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuLimits {
    /// Storage buffers bound in one dispatch.
    pub max_storage_buffers: u32,
    /// Bytes of one binding.
    pub max_binding_bytes: u64,
    /// Bytes of one buffer.
    pub max_buffer_bytes: u64,
    /// Bytes of workgroup memory.
    pub max_workgroup_storage_bytes: u32,
    /// Invocations of one workgroup.
    pub max_workgroup_invocations: u32,
    /// Invocations of one workgroup per dimension.
    pub max_workgroup_size: [u32; 3],
    /// Workgroups per dimension of a grid.
    pub max_workgroups_per_dimension: u32,
    /// Bytes of immediates.
    pub max_immediate_bytes: u32,
}

/// Requirements of a GPU variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuRequirements {
    /// Required features, sorted.
    pub features: Vec<GpuFeature>,
    /// The exact subgroup size that kernels assume: a device must have this one and no other.
    pub subgroup_size: Option<u32>,
    /// Least limits.
    pub limits: GpuLimits,
}

impl GpuRequirements {
    /// The requirements that `device` does not meet, in words; empty if it meets all.
    pub fn missing(&self, device: &GpuDescription) -> Vec<String> {
        let mut missing: Vec<String> = Vec::new();
        for feature in &self.features {
            if !device.has(*feature) {
                missing.push(format!("feature {}", feature.as_str()));
            }
        }
        let offered = (device.subgroup_min_size, device.subgroup_max_size);
        if let Some(size) = self.subgroup_size.filter(|&size| offered != (size, size)) {
            missing.push(format!("subgroup size {size} (the device has {} to {})", offered.0, offered.1));
        }
        missing.extend(self.limits.exceeded(&device.limits));
        missing
    }
}

impl GpuLimits {
    /// The limits of `device` that are smaller than these, in words.
    fn exceeded(&self, device: &GpuLimits) -> Vec<String> {
        let rows: [(&str, u64, u64); 10] = [
            ("storage buffers", self.max_storage_buffers.into(), device.max_storage_buffers.into()),
            ("binding bytes", self.max_binding_bytes, device.max_binding_bytes),
            ("buffer bytes", self.max_buffer_bytes, device.max_buffer_bytes),
            ("workgroup memory", self.max_workgroup_storage_bytes.into(), device.max_workgroup_storage_bytes.into()),
            ("invocations", self.max_workgroup_invocations.into(), device.max_workgroup_invocations.into()),
            ("workgroup size x", self.max_workgroup_size[0].into(), device.max_workgroup_size[0].into()),
            ("workgroup size y", self.max_workgroup_size[1].into(), device.max_workgroup_size[1].into()),
            ("workgroup size z", self.max_workgroup_size[2].into(), device.max_workgroup_size[2].into()),
            (
                "workgroups per dimension",
                self.max_workgroups_per_dimension.into(),
                device.max_workgroups_per_dimension.into(),
            ),
            ("immediate bytes", self.max_immediate_bytes.into(), device.max_immediate_bytes.into()),
        ];
        rows.iter()
            .filter(|(_, needed, offered)| needed > offered)
            .map(|(name, needed, offered)| format!("{name} {needed} (the device offers {offered})"))
            .collect()
    }
}

/// Description of a GPU: the object that `devices --json` prints and `--target gpu:FILE.json` reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuDescription {
    /// The adapter's name, or `portable`.
    pub name: String,
    /// The API; `None` for a description of any.
    pub backend: Option<Backend>,
    /// The kind of adapter.
    pub device_type: DeviceType,
    /// Driver name and version, for reports only.
    #[serde(default)]
    pub driver: String,
    /// Features, sorted.
    pub features: Vec<GpuFeature>,
    /// Limits.
    pub limits: GpuLimits,
    /// Smallest subgroup size that a pipeline may get; 0 without subgroups.
    pub subgroup_min_size: u32,
    /// Largest one.
    pub subgroup_max_size: u32,
}

impl GpuDescription {
    /// The capabilities of every WebGPU device: the default limits, no feature.
    pub fn portable() -> GpuDescription {
        GpuDescription {
            name: "portable".into(),
            backend: None,
            device_type: DeviceType::Other,
            driver: String::new(),
            features: Vec::new(),
            limits: GpuLimits {
                max_storage_buffers: 8,
                max_binding_bytes: 128 << 20,
                max_buffer_bytes: 256 << 20,
                max_workgroup_storage_bytes: 16 << 10,
                max_workgroup_invocations: 256,
                max_workgroup_size: [256, 256, 64],
                max_workgroups_per_dimension: 65_535,
                max_immediate_bytes: 0,
            },
            subgroup_min_size: 0,
            subgroup_max_size: 0,
        }
    }

    /// The same device for programs that no one vouches for: without cooperative matrices, whose accesses nothing checks.
    #[must_use]
    pub fn without_trust(mut self) -> GpuDescription {
        self.features.retain(|feature| *feature != GpuFeature::CooperativeMatrix);
        self
    }

    /// Whether kernels compute f16 in f32 and round each result: on devices without f16, and on software adapters, which
    /// convert each operand and result of an f16 op.
    pub fn has_wide_halves(&self) -> bool {
        self.is_cpu_adapter() || !self.has(GpuFeature::F16)
    }

    /// Whether kernels can be compiled for such a device: true for every WebGPU device.
    ///
    /// # Errors
    /// The defect, for a description that was written by hand or damaged.
    pub fn check(&self) -> Result<(), String> {
        let limits = &self.limits;
        let sizes = limits.max_workgroup_size;
        let least = [
            ("max_storage_buffers", u64::from(limits.max_storage_buffers), 4),
            ("max_binding_bytes", limits.max_binding_bytes, 1 << 16),
            ("max_buffer_bytes", limits.max_buffer_bytes, 1 << 16),
            ("max_workgroup_invocations", limits.max_workgroup_invocations.into(), 64),
            ("max_workgroup_size[0]", sizes[0].into(), 64),
            ("max_workgroup_size[1]", sizes[1].into(), 1),
            ("max_workgroup_size[2]", sizes[2].into(), 1),
            // Folded grids have rows of so many.
            ("max_workgroups_per_dimension", limits.max_workgroups_per_dimension.into(), GRID_ROW),
        ];
        if let Some((name, found, least)) = least.into_iter().find(|(_, found, least)| found < least) {
            return Err(format!("limit `{name}` is {found}, at least {least} is needed"));
        }
        let (min, max) = (self.subgroup_min_size, self.subgroup_max_size);
        let is_size = |size: u32| size == 0 || (size.is_power_of_two() && size <= 128);
        if min > max || !is_size(min) || !is_size(max) || (min == 0) != (max == 0) {
            return Err(format!("subgroups of {min} to {max} invocations do not exist"));
        }
        Ok(())
    }

    /// Whether it is a software adapter: kernels without workgroup memory are many times faster there.
    pub fn is_cpu_adapter(&self) -> bool {
        self.device_type == DeviceType::Cpu
    }

    /// Whether the device has `feature`.
    pub fn has(&self, feature: GpuFeature) -> bool {
        self.features.contains(&feature)
    }

    /// The subgroup size, if all pipelines have the same.
    pub fn exact_subgroup_size(&self) -> Option<u32> {
        let fixed = self.subgroup_min_size == self.subgroup_max_size && self.subgroup_min_size > 0;
        (fixed && self.has(GpuFeature::Subgroup)).then_some(self.subgroup_min_size)
    }

    /// Lanes of the subgroups that multiply cooperative matrices; `None` on devices where kernels have none.
    ///
    /// The kernels assume one size of subgroups and arithmetic of f16, and run as SPIR-V without translation.
    pub fn cooperative_lanes(&self) -> Option<u32> {
        let needed = [GpuFeature::CooperativeMatrix, GpuFeature::PassthroughShaders];
        let fits = needed.iter().all(|feature| self.has(*feature)) && !self.has_wide_halves();
        self.exact_subgroup_size().filter(|_| fits)
    }
}

/// A CPU, as input of the code generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTarget {
    /// The architecture as in a target triple: `x86_64`, `aarch64`.
    pub arch: String,
    /// LLVM's name of the CPU: `x86-64-v3`, `generic`.
    pub cpu: String,
    /// LLVM's names of the features that code may use, sorted.
    pub features: Vec<String>,
    /// Width of the widest vector register that pays off.
    pub vector_bits: u32,
}

/// Features beyond plain x86-64 that each level adds, by LLVM's names.
const X86_64_V2: [&str; 6] = ["cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"];
const X86_64_V3: [&str; 8] = ["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"];
const X86_64_V4: [&str; 5] = ["avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"];
/// Dot products of 8-bit integers, for registers of 512 bits, and for CPUs whose registers have 256.
const VNNI: [&str; 1] = ["avx512vnni"];
const AVX_VNNI: [&str; 1] = ["avxvnni"];
/// Products of tiles of them.
const AMX: [&str; 2] = ["amx-int8", "amx-tile"];
/// Dot products of 8-bit integers on Arm, and such of one factor with a sign and one without.
const DOTPROD: [&str; 1] = ["dotprod"];
const I8MM: [&str; 1] = ["i8mm"];

impl CpuTarget {
    /// The machine of this process, rounded down to a microarchitecture level, so that artifacts made on
    /// machines of one level are equal.
    pub fn host() -> CpuTarget {
        let wide = ["x86-64-v4-amx", "x86-64-v4-vnni", "x86-64-v4"];
        let narrow = ["x86-64-v3-vnni", "x86-64-v3", "x86-64-v2", "x86-64"];
        let others = ["aarch64-i8mm", "aarch64-dotprod", "generic"];
        let levels = wide.into_iter().chain(narrow).chain(others);
        levels.filter_map(CpuTarget::parse).find(|target| target.missing().is_empty()).unwrap_or_else(|| CpuTarget {
            arch: std::env::consts::ARCH.into(),
            cpu: "generic".into(),
            features: Vec::new(),
            vector_bits: 128,
        })
    }

    /// The CPU named `name`: `host`, `x86-64` with `-v2`, `-v3`, `-v3-vnni`, `-v4`, `-v4-vnni`, `-v4-amx`, `aarch64` with `-dotprod` or
    /// `-i8mm`, or `generic` (this architecture's baseline).
    pub fn parse(name: &str) -> Option<CpuTarget> {
        let (arch, levels, vector_bits): (&str, &[&[&str]], u32) = match name {
            "host" => return Some(CpuTarget::host()),
            "x86-64" => ("x86_64", &[], 128),
            "x86-64-v2" => ("x86_64", &[&X86_64_V2], 128),
            "x86-64-v3" => ("x86_64", &[&X86_64_V2, &X86_64_V3], 256),
            "x86-64-v3-vnni" => ("x86_64", &[&X86_64_V2, &X86_64_V3, &AVX_VNNI], 256),
            "x86-64-v4" => ("x86_64", &[&X86_64_V2, &X86_64_V3, &X86_64_V4], 512),
            "x86-64-v4-vnni" => ("x86_64", &[&X86_64_V2, &X86_64_V3, &X86_64_V4, &VNNI], 512),
            "x86-64-v4-amx" => ("x86_64", &[&X86_64_V2, &X86_64_V3, &X86_64_V4, &VNNI, &AMX], 512),
            "aarch64" => ("aarch64", &[], 128),
            "aarch64-dotprod" => ("aarch64", &[&DOTPROD], 128),
            "aarch64-i8mm" => ("aarch64", &[&DOTPROD, &I8MM], 128),
            "generic" => (std::env::consts::ARCH, &[], 128),
            _ => return None,
        };
        let mut features: Vec<String> = levels.iter().flat_map(|level| level.iter().map(|f| (*f).to_owned())).collect();
        features.sort();
        let cpu = match name {
            _ if arch == "aarch64" => "generic".into(),
            // LLVM has no name for a level with an extension.
            _ => name.trim_end_matches("-vnni").trim_end_matches("-amx").into(),
        };
        Some(CpuTarget { arch: arch.into(), cpu, features, vector_bits })
    }

    /// Whether code may use a feature, by LLVM's name.
    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|own| own == feature)
    }

    /// Whether an instruction adds four products of bytes to each lane of a vector: of factors that both have a sign or both have
    /// none (`alike`), or of one of each. FEAT_DotProd has the former; the latter are those of factors less half of their range.
    pub fn adds_bytes(&self, alike: bool) -> bool {
        let mixed = self.has("avx512vnni") || self.has("avxvnni");
        self.has("dotprod") || mixed && !alike
    }

    /// LLVM's feature string: `+avx,+avx2,...`.
    pub fn llvm_features(&self) -> String {
        self.features.iter().map(|feature| format!("+{feature}")).collect::<Vec<_>>().join(",")
    }

    /// Lanes of `dtype` in one vector register.
    pub fn lanes(&self, dtype: crate::DType) -> u32 {
        (u64::from(self.vector_bits) / 8 / dtype.size_bytes()).max(1) as u32
    }

    /// The requirements that this machine does not meet, in words; empty if it meets all.
    pub fn missing(&self) -> Vec<String> {
        missing_on_host(&self.arch, &self.features)
    }
}

/// The parts of `arch` and `features` (LLVM's names) that this machine lacks, in words.
pub fn missing_on_host(arch: &str, features: &[String]) -> Vec<String> {
    if arch != std::env::consts::ARCH {
        return vec![format!("architecture {arch} (this machine is {})", std::env::consts::ARCH)];
    }
    features.iter().filter(|feature| !host_has(feature)).map(|feature| format!("cpu feature {feature}")).collect()
}

/// Whether this machine's CPU has a feature by its LLVM name; an unknown name counts as absent.
#[cfg(target_arch = "x86_64")]
fn host_has(feature: &str) -> bool {
    use std::is_x86_feature_detected as detected;
    match feature {
        "cx16" => detected!("cmpxchg16b"),
        "popcnt" => detected!("popcnt"),
        "sse" => detected!("sse"),
        "sse2" => detected!("sse2"),
        "sse3" => detected!("sse3"),
        "ssse3" => detected!("ssse3"),
        "sse4.1" => detected!("sse4.1"),
        "sse4.2" => detected!("sse4.2"),
        "avx" => detected!("avx"),
        "avx2" => detected!("avx2"),
        "bmi" => detected!("bmi1"),
        "bmi2" => detected!("bmi2"),
        "f16c" => detected!("f16c"),
        "fma" => detected!("fma"),
        "lzcnt" => detected!("lzcnt"),
        "movbe" => detected!("movbe"),
        "avx512f" => detected!("avx512f"),
        "avx512bw" => detected!("avx512bw"),
        "avx512cd" => detected!("avx512cd"),
        "avx512dq" => detected!("avx512dq"),
        "avx512vl" => detected!("avx512vl"),
        "avx512vnni" => detected!("avx512vnni"),
        "avxvnni" => detected!("avxvnni"),
        "avx512bf16" => detected!("avx512bf16"),
        "avx512fp16" => detected!("avx512fp16"),
        "amx-tile" => system_has("amx_tile"),
        "amx-int8" => system_has("amx_int8"),
        _ => false,
    }
}

/// Whether Linux lists a flag of the CPU: it does where it also keeps the registers of threads. No standard function tells of
/// tile registers.
#[cfg(target_arch = "x86_64")]
fn system_has(flag: &str) -> bool {
    static FLAGS: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        text.lines().find(|line| line.starts_with("flags")).unwrap_or_default().to_owned()
    });
    FLAGS.split_whitespace().any(|own| own == flag)
}

/// Whether this machine's CPU has a feature by its LLVM name; an unknown name counts as absent.
#[cfg(target_arch = "aarch64")]
fn host_has(feature: &str) -> bool {
    use std::arch::is_aarch64_feature_detected as detected;
    match feature {
        "neon" => detected!("neon"),
        "fp-armv8" => detected!("fp"),
        "fullfp16" => detected!("fp16"),
        "dotprod" => detected!("dotprod"),
        "bf16" => detected!("bf16"),
        "i8mm" => detected!("i8mm"),
        "sve" => detected!("sve"),
        _ => false,
    }
}

/// On other architectures no feature is detected.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn host_has(_feature: &str) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cooperative_matrices_need_all_that_their_kernels_assume() {
        use GpuFeature::{CooperativeMatrix, F16, PassthroughShaders, Subgroup};
        let device = GpuDescription {
            features: vec![Subgroup, F16, CooperativeMatrix, PassthroughShaders],
            subgroup_min_size: 32,
            subgroup_max_size: 32,
            ..GpuDescription::portable()
        };
        assert_eq!(device.cooperative_lanes(), Some(32));
        for needed in &device.features {
            let features = device.features.iter().copied().filter(|feature| feature != needed).collect();
            let lacking = GpuDescription { features, ..device.clone() };
            assert_eq!(lacking.cooperative_lanes(), None, "without {needed:?}");
        }
        let lacking = GpuDescription { subgroup_max_size: 64, ..device.clone() };
        assert_eq!(lacking.cooperative_lanes(), None, "subgroups of two sizes");
        let lacking = GpuDescription { device_type: DeviceType::Cpu, ..device.clone() };
        assert_eq!(lacking.cooperative_lanes(), None, "a software adapter");
        assert_eq!(device.without_trust().cooperative_lanes(), None, "without trust");
    }
}
