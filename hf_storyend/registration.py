"""Makes the installed classes known to transformers, so that saved models load without `trust_remote_code`."""

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.pipelines import PIPELINE_REGISTRY

from .modeling import (
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
    StoryEndingPipeline,
)
from .modeling.pipeline_incremental_encoder import TASK


def register() -> None:
    """Safe to call more than once."""
    config_class = IncrementalEncoderConfig
    AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
    for auto_class in (AutoModel, AutoModelForSeq2SeqLM):
        auto_class.register(config_class, IncrementalEncoderForEndingGeneration, exist_ok=True)
    AutoTokenizer.register(config_class, IncrementalEncoderTokenizer, exist_ok=True)
    # Unlike the others, this warns when it is there already.
    if TASK not in PIPELINE_REGISTRY.supported_tasks:
        PIPELINE_REGISTRY.register_pipeline(TASK, StoryEndingPipeline, AutoModelForSeq2SeqLM, type="text")
