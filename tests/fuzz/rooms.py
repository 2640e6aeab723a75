"""Statements that use the rooms of `ops/` in the midst of mutation: samples of every operation, and some on what is there."""

from __future__ import annotations

import numpy as np

from . import table
from .statements import bare, kind

# What NumPy's references raise where an operation makes no sense for the operands that chance gave it.
REFUSALS = (np.linalg.LinAlgError, TypeError, ZeroDivisionError)


def real_view(g, name):
    return f"mg.view_as_real({name})" if g.array(name).dtype.kind == "c" else name


def complex_variable(g, fits=lambda a: True):
    names = [n for n in g.names if g.env[n].a.dtype.kind == "c" and fits(g.env[n].a)]
    return g.r.choice(names) if names else None


# Samples: fresh buffers near the sample's own values, written to before the call and after it.


@kind(24, family="rooms")
def sampled(g):
    key = str(g.r.choice(table.of_name(g.r.choice(table.NAMES))))
    names = operands(g, key)
    if names is None or table.USABLE[key].writes:
        return None
    made = [g.new() for _ in table.shapes(key)]
    form = g.r.choice(table.forms(key))
    last = f", form={form!r}" if form != "function" else ""
    return f"{', '.join(made)}, = call({key!r}, {', '.join(names)}{last})"


@kind(8, family="rooms")
def sampled_complex(g):
    """On numbers that have imaginary parts, some of which are changed after they were joined."""
    key = str(g.r.choice(table.COMPLEX))
    names = []
    for values in table.inputs(key):
        real, imaginary = placed(g, values), placed(g, (0.4 * np.cos(2.3 * np.arange(values.size) + 1)).reshape(values.shape).round(3))
        if real is None or imaginary is None:
            return None
        names.append(g.new())
        if not g.add("join", f"{names[-1]} = mg.complex({real}, {imaginary})"):
            return None
        if g.chance(0.5):
            g.add("nudge", f"{names[-1]}" + g.r.choice([".mul_(0.98+0.05j)", ".imag.mul_(0.9)", ".real.add_(0.02)", f".imag[{g.basic_index(values.shape)}] += 0.03"]))
    made = [g.new() for _ in table.shapes(key)]
    return f"{', '.join(made)}, = call({key!r}, {', '.join(names)})"


@kind(6, writes=True, family="rooms")
def sampled_in_place(g):
    key = str(g.r.choice(table.of_name(g.r.choice(table.NAMES))))
    names = operands(g, key) if table.in_place_name(key) else None
    return names and f"write({key!r}, {', '.join(names)})"


@kind(5, writes=True, family="rooms")
def sampled_out(g):
    """Into a variable of the right shape, which may be an operand, or into a window of a new buffer."""
    key = str(g.r.choice(table.of_name(g.r.choice(table.NAMES))))
    names = operands(g, key) if table.takes_out(key) else None
    if names is None:
        return None
    shape, = table.shapes(key)
    target = g.variable(lambda a: a.shape == shape and a.flags.writeable)
    if target is None or g.chance(0.3):
        target = placed(g, np.full(shape, 0.5))
    return target and f"into({key!r}, {target}, {', '.join(names)})"


def operands(g, key):
    """Variables with the values that a sample wants, perhaps rows of one buffer, perhaps changed a little after they were made."""
    values = table.inputs(key)
    alike = len(values) > 1 and len({v.shape for v in values}) == 1
    names = rows_of_one(g, values) if alike and g.chance(0.4) else [placed(g, v) for v in values]
    if None in names:
        return None
    for name in names:
        if g.chance(0.5):
            nudge(g, name)
    return names


def nudge(g, name):
    target = f"{name}[{g.basic_index(g.shape(name))}]" if g.chance(0.7) else name
    shape = g.shape(target)
    g.add("nudge", g.r.choice([
        f"{target}.add_(mg.tanh({g.tensor_value(shape)}) * 0.05)", f"{target} *= 1.0 + 0.03 * mg.sin({g.tensor_value(shape)})",
        f"{target}.mul_({round(g.r.uniform(0.96, 1.04), 3)})"]))


def placed(g, values):
    """A new variable near these values: a buffer of its own, or a window of a larger one."""
    source = g.variable(lambda a: a.size)
    if source is None:
        return None
    kind = g.r.choice(["whole", "whole", "row", "transposed", "stepped"])
    if kind == "row":
        return window(g, np.stack([values * 0.5, values]), source, "[1]")
    if kind == "transposed" and values.ndim > 1:
        return window(g, np.moveaxis(values, 0, -1), source, f".permute({', '.join(map(str, (values.ndim - 1, *range(values.ndim - 1))))})")
    if kind == "stepped" and values.ndim:
        return window(g, np.repeat(values, 2, axis=-1), source, "[..., 1::2]")
    name = g.new()
    return name if g.add("near", f"{name} = near({values.tolist()}, {source})") else None


def rows_of_one(g, values):
    source, base = g.variable(lambda a: a.size), g.new()
    names = [g.new() for _ in values]
    made = source and g.add("near", f"{base} = near({np.stack(values).tolist()}, {source})\n{', '.join(names)} = {base}.unbind(0)")
    return names if made else [None]


def window(g, values, source, step):
    base, name = g.new(), g.new()
    return name if g.add("near", f"{base} = near({values.tolist()}, {source})\n{name} = {base}{step}") else None


# On what is there.

ELEMENTWISE = [
    "mg.erf({x})", "mg.special.ndtr({x})", "mg.sinc({x})", "mg.expm1({x} * 0.5)", "mg.log1p({x} * {x})", "mg.atan2({x}, {y} * {y} + 1.0)",
    "mg.hypot({x}, {y} * 0.5 + 3.0)", "mg.logaddexp({x}, {y})", "mg.lgamma({x} * {x} + 1.2)", "mg.digamma({x} * {x} + 1.2)", "mg.xlogy({x}, {y} * {y} + 0.5)",
    "mg.special.i1({x})", "mg.polygamma(1, {x} * {x} + 1.2)", "mg.fmin({x}, {y})", "mg.lerp({x}, {y}, 0.3)", "mg.addcmul({x}, {y}, {x}, value=0.5)",
    "mg.nn.functional.gelu({x})", "mg.nn.functional.silu({x})", "mg.nn.functional.mish({x})", "mg.nn.functional.softplus({x})",
    "mg.nn.functional.elu({x})", "mg.selu({x})", "mg.nn.functional.logsigmoid({x})", "mg.nn.functional.softsign({x})",
    "mg.nn.functional.mse_loss({x}, {y})", "mg.nn.functional.huber_loss({x}, {y})", "mg.nn.functional.binary_cross_entropy_with_logits({x}, {y}.sigmoid())"]
ALONG = [
    "mg.cumprod({x} * 0.7, {d})", "mg.logcumsumexp({x}, {d})", "mg.cummax({x}, {d})[0]", "mg.cummin({x}, {d})[0]", "mg.median({x}, {d})[0]",
    "mg.quantile({x}, 0.3, {d})", "mg.topk({x}, 1, {d})[0]", "mg.diff({x}, 1, {d})", "mg.var({x}, {d}, False)",
    "mg.log_softmax({x}, {d})", "mg.nn.functional.softmax({x}, {d})", "mg.layer_norm({x}, ({n},))",
    "mg.nn.functional.rms_norm({x}, ({n},))", "mg.nn.functional.pad({x}, (1, 2))",
    "mg.unfold_copy({x}, {d}, 1, 1)", "mg.repeat_interleave({x}, 2, {d})", "mg.trapezoid({x}, dim={d})",
    "mg.linalg.vector_norm({x} + 3.0, 3, {d})", "mg.fft.irfft(mg.fft.rfft({x}, dim={d}) * {s}, n={size}, dim={d})", "mg.fft.fft({x}, dim={d}).real",
    "mg.view_as_real(mg.fft.rfft({x}, dim={d}))", "(mg.fft.fft({x}, dim={d}) * (0.3+0.7j)).imag"]
MATRICES = [
    "mg.linalg.inv({m})", "mg.linalg.det({m})", "mg.logdet({m})", "mg.linalg.solve({m}, {x})", "mg.linalg.cholesky({m})", "mg.matrix_exp({m} * 0.2)",
    "mg.linalg.svdvals({m} + f64({ramps}))", "mg.tril({x})", "mg.triu({x}, 1)", "mg.diag({x})", "mg.trace({x})", "mg.kron({x}, f64([[0.5, 1.0]]))",
    "mg.nn.functional.scaled_dot_product_attention({x}, {x}, {x})", "mg.nn.functional.embedding(mg.tensor({rows}), {x})",
    "mg.nn.functional.cross_entropy({x}, mg.tensor({classes}))", "mg.einsum('ij,kj->ik', {x}, {x})", "mg.nn.functional.normalize({x} + 2.0)",
    "mg.cdist({x}, {x} * 0.5 + 3.0, 2)", "mg.nn.functional.linear({x}, {x})", "mg.linalg.pinv({x}.T @ {x} + f64({eye_n}))",
    "mg.avg_pool1d(mg.cat([{x}, {x}], 1).unsqueeze(0), 2, 1)", "mg.renorm({x}, 2, 1, 0.9)", "mg.conv1d({x}.unsqueeze(0), {x}.unsqueeze(0)[:, :, :2])"]


def of_elements(g):
    x = g.variable(lambda a: a.size)
    return x and g.r.choice(ELEMENTWISE).format(x=x, y=g.tensor_value(g.shape(x)))


def along_dimension(g):
    x = g.variable(lambda a: a.ndim and a.size)
    if x is None:
        return None
    shape = g.shape(x)
    d = g.r.randrange(len(shape))
    return g.r.choice(ALONG).format(x=x, d=d, n=shape[-1], size=shape[d], s=g.scalar())


def of_matrix(g):
    x = g.variable(lambda a: a.ndim == 2 and a.size and a.size <= 50)
    if x is None:
        return None
    rows, columns = g.shape(x)
    m = f"({x} @ {x}.T * 0.3 + f64({(1.5 * np.eye(rows)).tolist()}))"
    return g.r.choice(MATRICES).format(
        x=x, m=m, ramps=np.diag(2.0 * np.arange(rows)).tolist(), rows=g.indices(rows), classes=[g.r.randrange(columns) for _ in range(rows)],
        eye_n=np.eye(columns).tolist())


@kind(16, family="rooms")
def room_call(g):
    expression = g.r.choice([of_elements, along_dimension, of_matrix])(g)
    return expression and f"{g.new()} = {expression}"


@kind(8, writes=True, family="rooms")
def room_call_assigned(g):
    """A result without a name goes into a window: of something that is there, or of a new buffer."""
    expression = g.r.choice([of_elements, along_dimension, of_matrix])(g)
    shape = expression and result_shape(g, expression)
    if shape is None:
        return None
    how = g.r.choice(["=", "=", "=", "+=", "*="])
    for _ in range(4):
        c = complex_variable(g)
        x = g.r.choice([f"{c}.real", f"{c}.imag", f"mg.view_as_real({c})"]) if c and g.chance(0.5) else g.variable()
        place = f"{x}[{g.basic_index(g.shape(x))}]"
        if g.shape(place) == shape and g.chance(0.7):
            return f"{place} {how} {expression}"
    buffer, rows = g.new(), g.r.choice([1, 2])
    return f"{buffer} = {g.literal((rows, *shape))}\n{buffer}[{rows - 1}] {how} {expression}" if np.prod(shape) <= 40 else None


def result_shape(g, expression):
    """None where the expression makes no sense for its operands."""
    try:
        with np.errstate(all="ignore"):
            return g.shape(expression)
    except (ValueError, IndexError, *REFUSALS):
        return None


LOOPS = [
    "for i in range({n}):\n    {x}[i] = mg.erf({y}[i]) * 0.9", "for i in range(1, {n}):\n    {x}[i] = mg.logaddexp({x}[i - 1], {y}[i]) * 0.5",
    "for i in range({n}):\n    {x}[i] += mg.sinc({y}[i])", "for i in range(1, {n}):\n    mg.lerp({x}[i - 1], {y}[i], 0.3, out={x}[i])"]
ROW_LOOPS = [
    "for i in range({n}):\n    {x}[i] = mg.softmax({x}[i] * 2.0, 0)", "for i in range({n}):\n    {x}[i] = mg.cumsum({y}[i], 0) * 0.5",
    "for i in range(1, {n}):\n    {x}[i] = mg.nn.functional.scaled_dot_product_attention({x}[i:i + 1], {x}[:i], {y}[:i])[0]",
    "for i in range(1, {n}):\n    {x}[i:] -= mg.outer({x}[i:, 0], {x}[i - 1]) * 0.3", "for row in {x}:\n    row.copy_(mg.nn.functional.silu(row))",
    "for i in range({n}):\n    {x}[i] = mg.stack([{x}[i], {y}[i]]).sum(0) * 0.6", "for i in range(1, {n}):\n    {x}[:i] = {x}[:i] + mg.einsum('j,kj->k', {x}[i], {y}[:i]).unsqueeze(1) * 0.2"]
COMPLEX_LOOPS = [
    "for i in range(1, {n}):\n    {c}[i] = {c}[i - 1] * {c}[i] * 0.5", "for i in range(1, {n}):\n    {c}.real[i] = mg.sin({c}.imag[i - 1])",
    "for i in range({n}):\n    {c}.imag[i] += mg.tanh({c}.real[i])", "for i in range({n}):\n    {c}[i] = {c}[i].conj() * (0.6+0.8j)",
    "for i in range(1, {n}):\n    mg.view_as_real({c})[i] = mg.view_as_real({c})[i - 1] * 0.7"]


@kind(4, writes=True, family="rooms")
def room_loop(g):
    c = complex_variable(g, lambda a: a.ndim and 1 < a.shape[0] < 8)
    if c is not None and g.chance(0.4):
        return g.r.choice(COMPLEX_LOOPS).format(c=c, n=g.shape(c)[0])
    x = g.variable(lambda a: a.ndim and 1 < a.shape[0] < 8 and a.size)
    if x is None:
        return None
    shape = g.shape(x)
    y = g.variable(lambda a: a.shape == shape)
    return g.r.choice(LOOPS + ROW_LOOPS * 2 * (len(shape) == 2)).format(x=x, y=y, n=shape[0])


IN_PLACE = [
    "{x}.erf_()", "{x}.sinc_()", "{x}.expm1_()", "{x}.lerp_({y}, 0.4)", "{x}.addcmul_({y}, {y}, value=0.3)", "{x}.hypot_({z} + 3.0)", "{x}.atan2_({z} * {z} + 1.0)",
    "mg.nn.functional.relu({x}, inplace=True)", "mg.nn.functional.elu({x}, inplace=True)", "mg.nn.functional.leaky_relu_({x}, 0.2)", "mg.nn.functional.silu({x}, inplace=True)",
    "mg.selu_({x})", "{x}.xlogy_({z} * {z} + 0.5)", "mg.nn.functional.hardtanh({x}, -0.75, 1.0, inplace=True)", "mg.celu_({x}, 1.5)",
    "mg.sin({y}, out={x})", "mg.mul({y}, {z}, out={x})", "mg.add({x}, {y}, out={x})", "mg.exp({x} * 0.3, out={x})", "mg.where({mask}, {y}, {z}, out={x})"]
IN_PLACE_ALONG = [
    "{x}.cumsum_({d})", "{x}.cumprod_({d})", "{x}.index_reduce_({d}, mg.tensor({rows}), {source}, 'prod')",
    "{x}.index_reduce_({d}, mg.tensor({rows}), {source}, 'mean')", "{x}.scatter_reduce_({d}, mg.tensor({full}), {y}, 'prod')",
    "{x}.scatter_reduce_({d}, mg.tensor({full}), {y}, 'mean')", "{x}.scatter_reduce_({d}, mg.tensor({full}), {y}, 'amax')",
    "mg.cumsum({y}, {d}, out={x})", "mg.softmax({y}, {d}).clone().copy_({x})", "mg.cat([{x}[:1], {x}[1:] * 0.5], out={x})", "{x}.masked_scatter_({mask}, {y})",
    "{x}.copy_(mg.cumsum({x}, {d}))"]
IN_PLACE_MATRIX = ["{x}.tril_()", "{x}.renorm_(2, 0, 1.5)", "{x}.triu_()", "{x}.fill_diagonal_(0.3)", "{x}.addmm_({x}, {eye})", "{x}.addr_({x}[:, 0], {x}[0], beta=1.0, alpha=0.4)",
                   "mg.matmul({x}, {eye}, out={x})", "{x}.addmm_({x}[:, :1], {x}[:1], beta=0.5, alpha=0.3)", "mg.linalg.inv({x} * 0.2 + {eye} * 2.0, out={x})"]


@kind(6, writes=True, family="rooms")
def room_in_place(g):
    x = g.target() if g.chance(0.6) else g.variable()
    shape = g.shape(x)
    if 0 in shape:
        return None
    forms = IN_PLACE + IN_PLACE_ALONG * bool(shape) + IN_PLACE_MATRIX * 2 * (len(shape) == 2)
    given = {"x": x, "y": g.tensor_value(shape), "z": g.tensor_value(shape), "mask": g.mask(shape)}
    if shape:
        d = g.r.randrange(len(shape))
        rows = g.indices(shape[d])
        full = np.array([g.r.randrange(shape[d]) for _ in range(int(np.prod(shape)))]).reshape(shape)
        given |= {"d": d, "rows": rows, "full": full.tolist(), "source": g.tensor_value((*shape[:d], len(rows), *shape[d + 1:])),
                  "eye": f"f64({np.eye(shape[-1]).tolist()})"}
    return g.r.choice(forms).format(**given)


@kind(4, writes=True, family="rooms")
def undefined_in_places(g):
    """A function is used outside its domain, and what is undefined is replaced: its derivative must not be seen."""
    x = g.variable(lambda a: a.ndim and a.size)
    if x is None:
        return None
    shape, h = g.shape(x), g.new()
    inside, call = g.r.choice([("{x} > 0.25", "mg.sqrt({x})"), ("{x} > 0.25", "mg.log({x})"), ("{x} > 0.25", "mg.rsqrt({x})"), ("mg.abs({x}) < 0.75", "mg.asin({x})"),
                               ("mg.abs({x}) < 0.75", "mg.atanh({x})"), ("{x} > 0.25", "{x} ** 0.5"), ("{x} > 1.25", "mg.acosh({x})")])
    inside, call = inside.format(x=x), call.format(x=x)
    return g.r.choice([
        lambda: f"{h} = mg.where({inside}, {call}, {g.value(shape)})",
        lambda: f"inside = {inside}\n{h} = {call}\n{h}[~inside] = {g.scalar()}",
        lambda: f"inside = {inside}\n{h} = {call}\n{h}.masked_fill_(~inside, {g.scalar()})",
        lambda: f"inside = {inside}\n{h} = {call}\n{h}.copy_(mg.where(inside, {h}, {g.value(shape)}))",
    ])()


# Complex numbers: views of pairs, and writes through their parts.


@kind(8, family="rooms")
def as_complex(g):
    x = g.variable(lambda a: a.ndim and a.shape[-1] == 2 and a.size)
    if x is not None and g.chance(0.6):
        return f"{g.new()} = mg.view_as_complex({x})"
    x = g.variable(lambda a: a.size and a.size < 40)
    if x is None:
        return None
    y = g.tensor_value(g.shape(x))
    return f"{g.new()} = " + g.r.choice([f"mg.complex({x}, {y})", f"mg.view_as_complex(mg.stack([{x}, {y}], -1))"])


@kind(9, family="rooms")
def of_complex(g):
    c = complex_variable(g, lambda a: a.size)
    if c is None:
        return None
    shape = g.shape(c)
    forms = [f"{c}.real", f"{c}.imag", f"mg.view_as_real({c})", f"{c}[{g.basic_index(shape)}]", f"{c}.reshape(-1)", f"{c} * (0.6-0.8j)", f"{c} * {c}.conj()",
             f"({c} + 3.0).abs()", f"({c} * 0.4).exp()", f"({c} * {c}).imag", f"{c} / ({c} * {c}.conj() + 1.0)", f"{c} * {g.value(shape)}", f"{c}.sum()",
             f"({c} + 4.0).angle()"]
    if shape:
        forms += [f"mg.fft.fft({c})", f"mg.fft.irfft({c})", f"mg.cumsum({c}, 0)", f"{c}[{g.indices(shape[0])}]", f"mg.cat([{c}, {c}.conj()])"]
    if len(shape) == 2:
        forms += [f"{c}.T", f"{c} @ {c}.T"]
    return f"{g.new()} = {g.r.choice(forms)}"


@kind(12, writes=True, family="rooms")
def complex_write(g):
    c = complex_variable(g, lambda a: a.size)
    if c is None:
        return None
    shape = g.shape(c)
    i = g.basic_index(shape)
    part = g.shape(f"{c}[{i}]")
    return g.r.choice([
        f"{c}.real[{i}] = {bare(g.value(part))}", f"{c}.imag[{i}] = {bare(g.value(part))}", f"{c}.imag.mul_({g.scalar()})", f"{c}.real.sin_()",
        f"{c}.real.copy_({c}.imag)", f"mg.view_as_real({c})[..., 0] += {bare(g.value(shape))}", f"mg.view_as_real({c})[..., 1] *= {bare(g.value(shape))}",
        f"{c}.mul_(0.6-0.8j)", f"{c} *= {c}", f"{c} += {bare(g.value(shape))}", f"{c}[{i}] = {c}[{i}].conj() * (0.2+0.9j)", f"{c}[{i}] = {bare(g.value(part))}",
        f"{c}[{i}] *= 1j", f"{c}.sub_({c}.conj())", f"{c}.real += {c}.imag", f"{c}.zero_()", f"{c}.imag.add_({c}.real, alpha=0.4)",
        f"{c}[{i}].real.copy_(mg.sin({c}[{i}].imag))", f"{c}[{i}].imag *= {c}[{i}].real", f"{c}.div_({c} * {c}.conj() + 1.0)",
        f"{c}.copy_({c}.real)", f"{c}.fill_(0.5-0.3j)"])


# Sweeps and hooks between the statements.


@kind(2, family="rooms")
def sweep_early(g):
    return f"sweep({g.variable()}{g.r.choice(['', ', create_graph=True'])})"


@kind(1, family="rooms")
def hook(g):
    return f"watch({g.variable(lambda a: 0 not in a.strides)}{g.r.choice(['', ', change=True'])})"


@kind(4, unrecorded=True, family="rooms")
def running_statistics(g):
    x = g.variable(lambda a: a.ndim == 2 and a.shape[0] > 1 and a.size)
    if x is None:
        return None
    columns = g.shape(x)[1]
    mean, var = g.new(), g.new()
    return f"{mean}, {var} = f64({[0.5] * columns}), f64({[1.0] * columns})\n{g.new()} = batch_norm({x}, {mean}, {var})"
