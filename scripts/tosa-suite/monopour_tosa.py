"""monopour as a system under test of TOSA's test runner (`tosa_verif_run_tests -s monopour_tosa`).

MONOPOUR is the binary, DEVICE cpu or gpu. The flatbuffer becomes MLIR by `tosa-opt` of the same package."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from runner.tosa_test_runner import TosaTestRunner

TOSA_OPT = pathlib.Path(sys.executable).with_name("tosa-opt")


class TosaSUTRunner(TosaTestRunner):
    def runTestGraph(self):
        desc, graph = self.testDesc, TosaTestRunner.TosaGraphResult
        with tempfile.TemporaryDirectory() as temporary:
            work = pathlib.Path(temporary)
            model, inputs, outputs = work / "model.mlir", work / "in", work / "out"
            inputs.mkdir()
            for name, file in zip(desc["ifm_name"], desc["ifm_file"]):
                shutil.copy(self.testDirPath / file, inputs / f"{name}.npy")
            read = ["-", f"--tosa-deserialize=tosa-flatbuffer-filename={self.testDirPath / desc['tosa_file']}", "-o", model,
                    "--mlir-print-elementsattrs-with-hex-if-larger=-1"]
            run = [os.environ["MONOPOUR"], "run", model, "--device", os.environ["DEVICE"], "--inputs", inputs, "--outputs", outputs]
            for command in [TOSA_OPT, *read], run:
                done = subprocess.run(list(map(str, command)), input="", capture_output=True, text=True)
                if done.returncode:
                    return (graph.TOSA_ERROR if done.returncode == 1 else graph.OTHER_ERROR), done.stderr
            for name, file in zip(desc["ofm_name"], desc["ofm_file"]):
                shutil.copy(outputs / f"{name}.npy", self.testDirPath / file)
        return graph.TOSA_VALID, None
