"""onnxruntime as the peer of this folder's scripts."""
import onnxruntime as ort

ort.set_default_logger_severity(4)


def session(model, threads=0):
    """A session on so many CPU threads, or as many as it takes, whose sums of 8-bit products are exact. By default they are not on
    CPUs with AVX2 and without VNNI: `vpmaddubsw` adds two products in 16 bits, and saturates (8 terms of 255 x 127: 131068, not
    259080)."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, min(threads, 1)
    options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
