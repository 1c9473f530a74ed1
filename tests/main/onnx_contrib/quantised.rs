//! Quantised ops, and ops that ONNX's suite lacks, with values of onnxruntime 1.31.1.

use super::Attr::{Float, Int, List};
use super::Case;
use super::Input::{Floats, Ints, Values};
use monopour_testkit::Dtype;

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    Case {
        name: "qlinear_add",
        op: "QLinearAdd",
        domain: "com.microsoft",
        inputs: &[
            Ints(Dtype::Unsigned(8), &[2, 3], &[11, 52, 93, 134, 175, 216]),
            Values(&[], &[0.03]),
            Ints(Dtype::Unsigned(8), &[], &[100]),
            Ints(Dtype::Unsigned(8), &[1, 3], &[11, 88, 165]),
            Values(&[], &[0.02]),
            Ints(Dtype::Unsigned(8), &[], &[120]),
            Values(&[], &[0.05]),
            Ints(Dtype::Unsigned(8), &[], &[128])],
        attributes: &[],
        outputs: &[(0, &[2, 3], &[31.0, 86.0, 142.0, 105.0, 160.0, 216.0])],
    },
    Case {
        name: "qlinear_mul",
        op: "QLinearMul",
        domain: "com.microsoft",
        inputs: &[
            Ints(Dtype::Unsigned(8), &[2, 3], &[11, 52, 93, 134, 175, 216]),
            Values(&[], &[0.03]),
            Ints(Dtype::Unsigned(8), &[], &[100]),
            Ints(Dtype::Unsigned(8), &[1, 3], &[11, 88, 165]),
            Values(&[], &[0.02]),
            Ints(Dtype::Unsigned(8), &[], &[120]),
            Values(&[], &[0.05]),
            Ints(Dtype::Unsigned(8), &[], &[128])],
        attributes: &[],
        outputs: &[(0, &[2, 3], &[244.0, 146.0, 124.0, 84.0, 99.0, 191.0])],
    },
    Case {
        name: "qlinear_sigmoid",
        op: "QLinearSigmoid",
        domain: "com.microsoft",
        inputs: &[
            Ints(Dtype::Int(8), &[8], &[-117, -80, -43, -6, 31, 68, 105, -114]),
            Values(&[], &[0.05]),
            Ints(Dtype::Int(8), &[], &[10]),
            Values(&[], &[0.0039062]),
            Ints(Dtype::Int(8), &[], &[-128])],
        attributes: &[],
        outputs: &[(0, &[8], &[-128.0, -125.0, -111.0, -49.0, 62.0, 115.0, 126.0, -127.0])],
    },
    Case {
        name: "qlinear_leaky_relu",
        op: "QLinearLeakyRelu",
        domain: "com.microsoft",
        inputs: &[
            Ints(Dtype::Int(8), &[8], &[-117, -80, -43, -6, 31, 68, 105, -114]),
            Values(&[], &[0.05]),
            Ints(Dtype::Int(8), &[], &[10]),
            Values(&[], &[0.04]),
            Ints(Dtype::Int(8), &[], &[-20])],
        attributes: &[("alpha", Float(0.5))],
        outputs: &[(0, &[8], &[-99.0, -76.0, -53.0, -30.0, 6.0, 53.0, 99.0, -98.0])],
    },
    Case {
        name: "qlinear_global_average_pool",
        op: "QLinearGlobalAveragePool",
        domain: "com.microsoft",
        inputs: &[
            Ints(Dtype::Unsigned(8), &[1, 2, 2, 3], &[11, 52, 93, 134, 175, 216, 1, 42, 83, 124, 165, 206]),
            Values(&[], &[0.03]),
            Ints(Dtype::Unsigned(8), &[], &[10]),
            Values(&[], &[0.02]),
            Ints(Dtype::Unsigned(8), &[], &[12])],
        attributes: &[],
        outputs: &[(0, &[1, 2, 1, 1], &[167.0, 152.0])],
    },
    Case {
        name: "dynamic_quantize_matmul",
        op: "DynamicQuantizeMatMul",
        domain: "com.microsoft",
        inputs: &[
            Floats(&[2, 4]),
            Ints(Dtype::Unsigned(8), &[4, 3], &[11, 82, 153, 224, 39, 110, 181, 252, 67, 138, 209, 24]),
            Values(&[1], &[0.01]),
            Ints(Dtype::Unsigned(8), &[1], &[100]),
            Floats(&[3])],
        attributes: &[],
        outputs: &[(0, &[2, 3], &[-0.3475, 1.42, -0.5375, -0.56625, -1.3963, 1.0887])],
    },
    Case {
        name: "matmul_integer_to_float",
        op: "MatMulIntegerToFloat",
        domain: "com.microsoft",
        inputs: &[
            Ints(Dtype::Unsigned(8), &[2, 4], &[11, 64, 117, 170, 223, 20, 73, 126]),
            Ints(Dtype::Int(8), &[4, 3], &[-117, -46, 25, 96, -89, -18, 53, 124, -61, 10, 81, -104]),
            Values(&[1], &[0.02]),
            Values(&[3], &[0.01, 0.02, 0.03]),
            Ints(Dtype::Unsigned(8), &[1], &[100]),
            Ints(Dtype::Int(8), &[3], &[1, 2, 3])],
        attributes: &[],
        outputs: &[(0, &[2, 3], &[1.7192, 6.0608, -5.868, -4.6568, 0.0544, 1.9992])],
    },
    Case {
        name: "matmul_4_bits",
        op: "MatMulNBits",
        domain: "com.microsoft",
        inputs: &[
            Floats(&[2, 40]),
            Ints(Dtype::Unsigned(8), &[3, 3, 8], &[11, 102, 193, 28, 119, 210, 45, 136, 227, 62, 153, 244, 79, 170, 5, 96, 187, 22, 113, 204, 39, 130,
            221, 56, 147, 238, 73, 164, 255, 90, 181, 16, 107, 198, 33, 124, 215, 50, 141, 232, 67, 158, 249, 84,
            175, 10, 101, 192, 27, 118, 209, 44, 135, 226, 61, 152, 243, 78, 169, 4, 95, 186, 21, 112, 203, 38,
            129, 220, 55, 146, 237, 72]),
            Values(&[9], &[0.25, 0.5, 0.75, 1.0, 0.125, 0.375, 0.625, 0.875, 1.25]),
            Ints(Dtype::Unsigned(8), &[6], &[87, 9, 104, 10, 147, 4])],
        attributes: &[("K", Int(40)), ("N", Int(3)), ("bits", Int(4)), ("block_size", Int(16))],
        outputs: &[(0, &[2, 3], &[1.8125, -0.76562, 22.266, -3.125, 9.9062, 1.5312])],
    },
    Case {
        name: "max_roi_pool",
        op: "MaxRoiPool",
        domain: "",
        inputs: &[
            Floats(&[2, 1, 6, 5]),
            Values(&[2, 5], &[0.0, 2.0, 3.0, 8.0, 9.0, 1.0, 0.0, 0.0, 9.0, 11.0])],
        attributes: &[("pooled_shape", List(&[2, 3])), ("spatial_scale", Float(0.5))],
        outputs: &[(0, &[2, 1, 2, 3], &[0.875, -0.25, 0.125, 1.0, 1.0, -0.375, 0.125, 0.875, 1.0, 1.0, 0.125, 0.5])],
    },
    Case {
        name: "padded_maxpool",
        op: "MaxPool",
        domain: "",
        inputs: &[Floats(&[1, 2, 4, 4])],
        attributes: &[("kernel_shape", List(&[3, 3])), ("strides", List(&[2, 2])), ("pads", List(&[1, 1, 1, 1]))],
        outputs: &[(0, &[1, 2, 2, 2], &[1.0, 1.0, 1.0, 1.0, 0.875, 1.0, 0.625, 1.0])],
    },
    Case {
        name: "padded_averagepool",
        op: "AveragePool",
        domain: "",
        inputs: &[Floats(&[1, 2, 4, 4])],
        attributes: &[("kernel_shape", List(&[3, 3])), ("strides", List(&[2, 2])), ("pads", List(&[1, 1, 1, 1]))],
        outputs: &[(0, &[1, 2, 2, 2], &[0.0625, -0.083333, 0.1875, 0.041667, 0.21875, -0.10417, -0.1875, 0.13889])],
    },
    Case {
        name: "padded_lppool",
        op: "LpPool",
        domain: "",
        inputs: &[Floats(&[1, 2, 4, 4])],
        attributes: &[("kernel_shape", List(&[3, 3])), ("strides", List(&[2, 2])), ("pads", List(&[1, 1, 1, 1]))],
        outputs: &[(0, &[1, 2, 2, 2], &[1.5512, 1.4252, 1.4087, 1.9325, 1.4087, 1.7275, 1.4087, 1.7678])],
    },
];
