"""Makes the installed classes known to transformers, so that saved models load without `trust_remote_code`."""

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer

from .modeling import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer


def register() -> None:
    """Safe to call more than once."""
    config_class = IncrementalEncoderConfig
    AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
    for auto_class in (AutoModel, AutoModelForSeq2SeqLM):
        auto_class.register(config_class, IncrementalEncoderForEndingGeneration, exist_ok=True)
    AutoTokenizer.register(config_class, IncrementalEncoderTokenizer, exist_ok=True)
