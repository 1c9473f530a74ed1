"""`opt.py LOG ARGS...`: runs `monopour opt ARGS...`, and appends what our passes counted to LOG, a line of JSON."""
import json
import os
import re
import subprocess
import sys
import tempfile


def counted(report):
    """{pass: {statistic: count}} of a report as `--statistics-to` writes it."""
    passes, current = {}, None
    for line in report.splitlines():
        if match := re.match(r"\s+\(S\)\s+(\d+)\s+(\S+)", line):
            current[match[2]] = int(match[1])
        elif line.strip():
            # "OneShotBufferize (one-shot-bufferize)"
            current = passes.setdefault(line.strip().rstrip(")").split("(")[-1], {})
    return passes


def main():
    log, args = sys.argv[1], sys.argv[2:]
    with tempfile.NamedTemporaryFile("r", suffix=".statistics") as file:
        command = [os.environ["UPSTREAM_MONOPOUR"], "opt", *args, f"--statistics-to={file.name}"]
        status = subprocess.run(command).returncode
        line = {"args": args, "status": status, "passes": counted(file.read())}
    with open(log, "a") as out:
        out.write(json.dumps(line) + "\n")
    # A signal is a crash, whatever the test expects.
    return 139 if status < 0 else status


sys.exit(main())
