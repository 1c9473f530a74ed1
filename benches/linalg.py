"""Text of linalg on tensors, for the programs of `hardware.py` and `cpu_programs.py`."""


def tensor(shape, element="f32"):
    return "tensor<" + "x".join(map(str, (*shape, element))) + ">"


def generic(name, loops, reads, result, body, kind="f32"):
    """A `linalg.generic`. `loops` are names, those of reductions end in `!`; `reads` are (value, shape, element, indices)."""
    names = [l.rstrip("!") for l in loops.split()]
    iterators = ", ".join('"reduction"' if l.endswith("!") else '"parallel"' for l in loops.split())
    out, shape, indices = result
    every = [*reads, (out, shape, kind, indices)]
    maps = ", ".join(f"affine_map<({', '.join(names)}) -> ({of})>" for *_, of in every)
    args = ", ".join(f"%{'abcdefgh'[i]}: {e}" for i, (_, _, e, _) in enumerate(reads)) + f", %o: {kind}"
    lines = "\n".join("    " + line.strip() for line in body.split(";"))
    ins = f"ins({', '.join(r[0] for r in reads)} : {', '.join(tensor(r[1], r[2]) for r in reads)})"
    return f"""  {name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} {ins} outs({out} : {tensor(shape, kind)}) {{
  ^bb0({args}):
{lines}
    linalg.yield %s : {kind}
  }} -> {tensor(shape, kind)}
"""


def empty(name, shape, element="f32"):
    return f"  {name} = tensor.empty() : {tensor(shape, element)}\n"


def filled(name, shape, element="f32", value="%z"):
    t = tensor(shape, element)
    return empty(f"{name}e", shape, element) + f"  {name} = linalg.fill ins({value} : {element}) outs({name}e : {t}) -> {t}\n"


def function(inputs, result, body):
    """`inputs` are (shape, element) in order: %arg0, ..."""
    args = ", ".join(f"%arg{i}: {tensor(s, e)}" for i, (s, e) in enumerate(inputs))
    head = f"func.func @main({args}) -> {result[1]} {{\n  %z = arith.constant 0.0 : f32\n"
    return head + body + f"  return {result[0]} : {result[1]}\n}}\n"


def product(name, loops, left, right, result, element):
    """Factors of `element`, summed in f32."""
    body = "%s = arith.addf %o, %m : f32"
    if element == "f32":
        body = f"%m = arith.mulf %a, %b : f32; {body}"
    else:
        body = f"%x = arith.extf %a : {element} to f32; %y = arith.extf %b : {element} to f32; %m = arith.mulf %x, %y : f32; {body}"
    return generic(name, loops, [(*left[:2], element, left[2]), (*right[:2], element, right[2])], result, body)


def softmax_of(x, shape, loops, row, full, out):
    """Of the last dimension."""
    head = shape[:-1]
    text = "  %low = arith.constant 0xFF800000 : f32\n" + filled("%m0", head, value="%low") + filled("%s0", head) + empty("%pe", shape)
    reducing = loops + "!"
    text += generic("%mx", reducing, [(x, shape, "f32", full)], ("%m0", head, row), "%s = arith.maximumf %o, %a : f32")
    text += generic("%ex", loops, [(x, shape, "f32", full), ("%mx", head, "f32", row)], ("%pe", shape, full), "%d = arith.subf %a, %b : f32; %s = math.exp %d : f32")
    text += generic("%sm", reducing, [("%ex", shape, "f32", full)], ("%s0", head, row), "%s = arith.addf %o, %a : f32")
    return text + generic(out, loops, [("%ex", shape, "f32", full), ("%sm", head, "f32", row)], ("%pe", shape, full), "%s = arith.divf %a, %b : f32")
