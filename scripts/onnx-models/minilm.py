"""all-MiniLM-L6-v2 as ONNX, from its safetensors weights: a graph builder and a WordPiece tokenizer.

input_ids, attention_mask, token_type_ids (i64 [batch, seq]) -> last_hidden_state [batch, seq, 384], sentence_embedding [batch, 384]
(mean over the tokens, of length 1). Static, with symbolic sizes and the shape arithmetic of exporters, or in f16."""
import json, struct, unicodedata, numpy as np
from common import B, T

def safetensors(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]; h = json.loads(f.read(n)); base = 8 + n; buf = np.memmap(path, np.uint8, "r")
    dt = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}
    return {k: np.frombuffer(buf[base + v["data_offsets"][0]: base + v["data_offsets"][1]].tobytes(), dt[v["dtype"]]).reshape(v["shape"]) for k, v in h.items() if k != "__metadata__"}

class WordPiece:
    def __init__(s, vocab):
        s.v = {t.rstrip("\n"): i for i, t in enumerate(open(vocab, encoding="utf-8"))}
    def words(s, text):
        text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn"); out = []; cur = ""
        for c in text:
            cat = unicodedata.category(c); cp = ord(c)
            punct = cat.startswith("P") or 33 <= cp <= 47 or 58 <= cp <= 64 or 91 <= cp <= 96 or 123 <= cp <= 126; cjk = 0x4E00 <= cp <= 0x9FFF
            if c.isspace() or punct or cjk:
                if cur: out.append(cur); cur = ""
                if punct or cjk: out.append(c)
            elif cat not in ("Cc", "Cf"): cur += c
        return out + ([cur] if cur else [])
    def encode(s, text, S=None):
        ids = [s.v["[CLS]"]]
        for w in s.words(text):
            i, sub = 0, []
            while i < len(w):
                j = len(w)
                while j > i and (("##" if i else "") + w[i:j]) not in s.v: j -= 1
                if j == i: sub = [s.v["[UNK]"]]; break
                sub.append(s.v[("##" if i else "") + w[i:j]]); i = j
            ids += sub
        ids = ids[: (S or 512) - 1] + [s.v["[SEP]"]]; n = len(ids); S = S or n
        return np.array([ids + [0] * (S - n)], np.int64), np.array([[1] * n + [0] * (S - n)], np.int64)

def build(W, cfg, opset=17, dtype="f32", batch=1, seq=128, dynamic=False):
    L, D, H, F, eps = cfg["num_hidden_layers"], cfg["hidden_size"], cfg["num_attention_heads"], cfg["intermediate_size"], cfg["layer_norm_eps"]; hd = D // H
    b = B("minilm_l6_v2" + ("_dyn" if dynamic else ""), opset, dtype); bs, ss = ("batch", "seq") if dynamic else (batch, seq)
    ids, am, tt = (b.inp(n, [bs, ss], "i64") for n in ("input_ids", "attention_mask", "token_type_ids"))
    wt = lambda k, t=False: b.weight(W[k].T if t else W[k], k + (".T" if t else ""))
    lin = lambda x, p: b.op("Add", b.op("MatMul", x, wt(p + ".weight", True)), wt(p + ".bias"))
    def ln(x, p):
        if opset >= 17: return b.op("LayerNormalization", x, wt(p + ".weight"), wt(p + ".bias"), axis=-1, epsilon=eps)
        c = b.op("Sub", x, b.rmean(x)); y = b.op("Div", c, b.op("Sqrt", b.op("Add", b.rmean(b.op("Pow", c, b.f(2.0))), b.f(eps))))
        return b.op("Add", b.op("Mul", y, wt(p + ".weight")), wt(p + ".bias"))
    if dynamic:
        dim = lambda a: b.unsq(b.op("Gather", b.op("Shape", ids), b.c(np.array(a, np.int64)), axis=0), 0); nb, ns = dim(0), dim(1)
        R = lambda x, *t: b.op("Reshape", x, b.op("Concat", nb, ns, *[b.i(k) for k in t], axis=0))
        pos = b.op("Slice", b.weight(np.arange(512, dtype=np.int64)[None], "position_ids"), b.i(0), ns, b.i(1))
    else:
        R = lambda x, *t: b.reshape(x, batch, seq, *t); pos = b.c(np.arange(seq, dtype=np.int64)[None])
    e = "embeddings."
    x = b.op("Add", b.op("Add", b.op("Gather", wt(e + "word_embeddings.weight"), ids), b.op("Gather", wt(e + "token_type_embeddings.weight"), tt)), b.op("Gather", wt(e + "position_embeddings.weight"), pos))
    x = ln(x, e + "LayerNorm")
    mf = b.op("Cast", am, to=T.FLOAT if dtype == "f32" else T.FLOAT16)
    bias = b.op("Mul", b.op("Sub", b.f(1.0), b.unsq(mf, 1, 2)), b.f(float(np.finfo(np.float32).min) if dtype == "f32" else -60000.0))
    for l in range(L):
        p = f"encoder.layer.{l}."; sp = lambda t: b.tr(R(t, H, hd), 0, 2, 1, 3)
        q, v = sp(lin(x, p + "attention.self.query")), sp(lin(x, p + "attention.self.value")); kt = b.tr(R(lin(x, p + "attention.self.key"), H, hd), 0, 2, 3, 1)
        a = b.softmax(b.op("Add", b.op("Div", b.op("MatMul", q, kt), b.f(hd ** .5)), bias))
        o = R(b.tr(b.op("MatMul", a, v), 0, 2, 1, 3), D)
        x = ln(b.op("Add", lin(o, p + "attention.output.dense"), x), p + "attention.output.LayerNorm")
        h = b.gelu(lin(x, p + "intermediate.dense")); x = ln(b.op("Add", lin(h, p + "output.dense"), x), p + "output.LayerNorm")
    m3 = b.unsq(mf, 2); rs = lambda t, ax, keep=0: b.op("ReduceSum", t, b.i(ax), keepdims=keep)
    pooled = b.op("Div", rs(b.op("Mul", x, m3), 1), b.op("Max", rs(m3, 1), b.f(1e-4 if dtype == "f16" else 1e-9)))
    nrm = b.op("ReduceL2", pooled, b.i(1), keepdims=1) if opset >= 18 else b.op("ReduceL2", pooled, axes=[1], keepdims=1)
    emb = b.op("Div", pooled, b.op("Max", nrm, b.f(1e-4 if dtype == "f16" else 1e-12)))
    b.out(x, "last_hidden_state", [bs, ss, D]); b.out(emb, "sentence_embedding", [bs, D]); return b

SENTENCES = ["A man is playing a guitar on stage.", "Someone performs music with a guitar.", "The stock market fell sharply on Tuesday.",
             "Shares dropped steeply in trading yesterday.", "How do I compile a tensor program for a GPU?", "What is the way to build kernels for graphics processors?",
             "The cat sat on the mat.", "A kitten is resting on a rug."]

def load(folder, **form):
    """The graph with the weights of a folder of the model's package."""
    return build(safetensors(folder + "/model.safetensors"), json.load(open(folder + "/config.json")), **form)
