# How lit runs upstream's test files with `monopour opt` in the place of mlir-opt. Started by run.py.
import os

import lit.formats

config.name = "upstream"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".mlir"]
config.test_source_root = os.environ["UPSTREAM_TESTS"]
config.test_exec_root = os.environ["UPSTREAM_WORK"]
# Statistics of ours are there in every build; upstream's need one with assertions.
config.available_features.add("asserts")
config.environment["UPSTREAM_MONOPOUR"] = os.environ["UPSTREAM_MONOPOUR"]
config.recursiveExpansionLimit = 3

here = os.path.dirname(__file__)
logged = f"{os.environ['UPSTREAM_PYTHON']} {os.path.join(here, 'opt.py')} %t.runs"
config.substitutions.append((r"(?<![\w/.-])mlir-opt(?![\w.-])", logged))
config.substitutions.append((r"(?<![\w/.-])FileCheck(?![\w.-])", os.environ["UPSTREAM_FILECHECK"]))
