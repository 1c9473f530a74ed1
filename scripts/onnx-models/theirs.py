"""onnxruntime as the peer of this folder's scripts, and of benches."""
import pathlib

import onnxruntime as ort

ort.set_default_logger_severity(4)
# Its kernels for these add four products of 8 bits in 32 bits. Where a CPU has none of them, `vpmaddubsw` adds two in 16 bits, and
# saturates: 8 terms of 255 x 127 are 131068, not 259080.
EXACT = {"avx_vnni", "avx512_vnni"}


def session(model, threads=0):
    """A session on so many CPU threads, or as many as it takes, whose sums of 8-bit products are exact: its option for that is set
    where its default is not, and nowhere else, as it then leaves VNNI and AMX unused."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, min(threads, 1)
    if not EXACT & set(features()):
        options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def features():
    """What Linux calls those of the CPU; none elsewhere."""
    info = pathlib.Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":", 1)[1].split() for line in lines if line.startswith(("flags", "Features"))), [])
