"""Write a model as ONNX files: `encoder.onnx`, `decoder_step.onnx`, and the tokenizer beside them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..pretrained import find_model, load
from .graphs import DecoderStepGraph, EncoderGraph, check_exportable, input_names
from .options import ExportOptions

if TYPE_CHECKING:
    from torch.onnx import ONNXProgram

ENCODER, DECODER_STEP = "encoder.onnx", "decoder_step.onnx"
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
    _check_installed()
    model, tokenizer = load(find_model(options.model))
    check_exportable(model)
    output_dir = Path(options.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output_dir) as temporary:
        written = _write_graphs(model, tokenizer, Path(temporary))
        if options.int8:
            written = [_quantize(path) for path in written]
        files = [path.replace(output_dir / path.name) for path in written]
    tokenizer.save_pretrained(output_dir)
    model.config.save_pretrained(output_dir)
    return files


def _write_graphs(
    model: IncrementalEncoderForEndingGeneration, tokenizer: IncrementalEncoderTokenizer, folder: Path
) -> list[Path]:
    model = model.eval().requires_grad_(False)
    batch = tokenizer(_EXAMPLES, return_tensors="pt")
    stories = {name: batch[name] for name in input_names(model.config)}
    encoder = EncoderGraph(model).eval()
    with torch.no_grad():
        encoded = encoder(stories)
    start = torch.full((len(_EXAMPLES), 1), model.config.decoder_start_token_id)
    step_inputs = {"decoder_input_ids": start, **encoded}
    paths = []
    for name, graph, inputs in ((ENCODER, encoder, stories), (DECODER_STEP, DecoderStepGraph(model).eval(), step_inputs)):
        program = _export_graph(graph, inputs)
        program.save(folder / name)
        paths.append(folder / name)
    return paths


def _export_graph(graph: nn.Module, inputs: dict[str, torch.Tensor]) -> ONNXProgram:
    """A graph whose sizes are all open but those that the weights decide."""
    with torch.no_grad():
        outputs = graph(inputs)
        exported = torch.export.export(graph, (inputs,), dynamic_shapes=({n: _open_sizes(n, t) for n, t in inputs.items()},))
        program = torch.onnx.export(
            exported, input_names=list(inputs), output_names=list(outputs), opset_version=OPSET, verbose=False
        )
    assert program is not None
    return program


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
    from onnxruntime.quantization import QuantType, quantize_dynamic

    target = path.with_name(f"int8_{path.name}")
    quantize_dynamic(path, target, weight_type=QuantType.QInt8, extra_options={"EnableSubgraph": True})
    return target.replace(path)


def _check_installed() -> None:
    try:
        import onnx
        import onnxruntime
        import onnxscript
    except ImportError as error:
        raise ImportError(f"{_NEEDED} ({error})") from error
    del onnx, onnxruntime, onnxscript
