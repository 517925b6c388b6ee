"""The example with transformers' Seq2SeqTrainer."""

import os
import subprocess
import sys
from pathlib import Path

from transformers import AutoModel, AutoTokenizer

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_example_with_the_trainer(prepared, tmp_path):
    command = [sys.executable, str(ROOT / "examples" / "train_with_trainer.py"), "--output_dir", str(tmp_path / "run")]
    command += ["--data_dir", str(prepared), "--max_steps", "3", "--save_strategy", "no", "--use_cpu", "True"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    assert "'eval_bleu_1'" in run.stdout and "'eval_loss'" in run.stdout
    model = AutoModel.from_pretrained(tmp_path / "run")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run")
    inputs = tokenizer("Tom made a cake. It burnt.", return_tensors="pt")
    assert model.generate(**inputs, max_new_tokens=3).shape[0] == 1
