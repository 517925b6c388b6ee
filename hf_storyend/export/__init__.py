"""Models as ONNX graphs, and endings from them without torch."""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .onnx_files import export
    from .options import ExportOptions
    from .runner import OnnxGenerator

__getattr__, __dir__, __all__ = lazy_exports(
    __name__, {"ExportOptions": ".options", "OnnxGenerator": ".runner", "export": ".onnx_files"}
)
