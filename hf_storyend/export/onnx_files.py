"""Write a model as ONNX files: `encoder.onnx`, `decoder_step.onnx`, and the tokenizer beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ..files import scratch_directory
from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..pretrained import find_model, load
from .graphs import DecoderStepGraph, EncoderGraph, check_exportable, input_names
from .options import ExportOptions
from .runner import DECODER_STEP, ENCODER, NEXT_STATE, PREFIX

OPSET = 20
# Three stories of different lengths: no two sizes of the example are equal by chance, so that none is tied to another.
_EXAMPLES = [
    "Ann put a cake in the oven. She fell asleep on the sofa after a very long day. The timer rang.",
    "Tom opened the window. He saw a bird.",
    "The dog barked. Sam woke up. He went outside. A cat ran away.",
]
_NEEDED = "`storyend export` needs onnx, onnxruntime and onnxscript: pip install 'hf_storyend[onnx]'."


def export(options: ExportOptions) -> list[Path]:
    """
    Export a model, and return the files that were written.

    Args:
        options: Model, output directory and precision.
    """
    name, output_dir = find_model(options.model), Path(options.output_dir)
    _check_free(output_dir, name)
    _check_installed()
    model, tokenizer = load(name)
    check_exportable(model)
    output_dir.mkdir(parents=True, exist_ok=True)
    with scratch_directory(output_dir, "onnx") as temporary:
        written = _write_graphs(model, tokenizer, temporary)
        if options.int8:
            written = [_quantize(path) for path in written]
        files = [path.replace(output_dir / path.name) for path in written]
    tokenizer.save_pretrained(output_dir)
    model.config.save_pretrained(output_dir)
    model.generation_config.save_pretrained(output_dir)
    return files


def _check_free(output_dir: Path, model: str) -> None:
    """Refuse the directory of another model, whose configuration and vocabulary would be replaced."""
    is_its_own = output_dir.resolve() == Path(model).resolve()
    if (output_dir / "config.json").is_file() and not (is_its_own or (output_dir / ENCODER).is_file()):
        raise ValueError(
            f"{output_dir} holds another model, whose configuration and vocabulary would be replaced: name another "
            "`output_dir`."
        )


def _write_graphs(
    model: IncrementalEncoderForEndingGeneration, tokenizer: IncrementalEncoderTokenizer, folder: Path
) -> list[Path]:
    model = model.eval().requires_grad_(False)
    batch = tokenizer(_EXAMPLES, return_tensors="pt")
    stories = {name: _widened(name, batch[name], model.config.pad_token_id) for name in input_names(model.config)}
    encoder = EncoderGraph(model).eval()
    encoded = encoder(stories)
    start = torch.full((len(_EXAMPLES), 1), model.config.decoder_start_token_id)
    step_inputs = {"decoder_input_ids": start, **encoded}
    # Names of a graph must differ, and some tensors leave the encoder under the name of an input.
    encoded_names = [f"{PREFIX}{name}" for name in encoded]
    _save_graph(folder / ENCODER, encoder, stories, (list(stories), encoded_names))
    step_names = (["decoder_input_ids", *encoded_names], ["logits", *NEXT_STATE.values()])
    _save_graph(folder / DECODER_STEP, DecoderStepGraph(model).eval(), step_inputs, step_names)
    return [folder / ENCODER, folder / DECODER_STEP]


def _widened(name: str, tensor: torch.Tensor, padding: int) -> torch.Tensor:
    """Room for one more triple a word and one more form: a size of 1 in the example would stay 1."""
    if name == "tail_form_ids":
        return functional.pad(tensor, (0, 1, 0, 1), value=padding)
    if name == "triple_ids":
        return functional.pad(tensor, (0, 0, 0, 1))
    return functional.pad(tensor, (0, 1)) if name in ("triple_mask", "triple_weights") else tensor


def _save_graph(
    path: Path, graph: nn.Module, inputs: dict[str, torch.Tensor], names: tuple[list[str], list[str]]
) -> None:
    """Write a graph whose sizes are all open but those that the weights decide."""
    sizes = {name: _open_sizes(name, tensor) for name, tensor in inputs.items()}
    # A number that differs from that of an earlier export, such as dropout, would become an input.
    torch.compiler.reset()
    exported = torch.export.export(graph, (inputs,), dynamic_shapes=(sizes,))
    program = torch.onnx.export(
        exported, input_names=names[0], output_names=names[1], opset_version=OPSET, verbose=False
    )
    assert program is not None
    program.save(path)


def _open_sizes(name: str, tensor: torch.Tensor) -> dict[int, Any]:
    """Sizes that differ between batches: stories, sentences, words, triples and forms, not those of vectors."""
    fixed = {
        "decoder_input_ids": {1},
        "triple_ids": {4},
        "state_hidden": {1, 2},
        "state_cell": {1, 2},
    }.get(name, {2} if tensor.is_floating_point() and tensor.ndim == 3 else set())
    return {place: torch.export.Dim.DYNAMIC for place in range(tensor.ndim) if place not in fixed}


def _quantize(path: Path) -> Path:
    """Weights in int8, activations at run time: what CPUs multiply fastest."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(path)
    _forget_shapes(model.graph)
    quantize_dynamic(model, path, weight_type=QuantType.QInt8, extra_options={"EnableSubgraph": True})
    return path


def _forget_shapes(graph: Any) -> None:
    """Drop the shapes of inner values: after optimisation some are those of transposed weights."""
    del graph.value_info[:]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _forget_shapes(attribute.g)


def _check_installed() -> None:
    try:
        import onnx
        import onnxruntime
        import onnxscript
    except ImportError as error:
        raise ImportError(f"{_NEEDED} ({error})") from error
    del onnx, onnxruntime, onnxscript
