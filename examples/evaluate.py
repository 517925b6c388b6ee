"""
Evaluate a model on any number of processes; the result is the same for all of them.

    accelerate launch examples/evaluate.py --model my_model --data_dir prepared --output_dir results
    torchrun --nproc_per_node 2 examples/evaluate.py --model my_model --data_dir prepared --output_dir results
"""

import argparse

from hf_storyend.evaluation import EvaluateOptions, evaluate
from hf_storyend.processes import start_accelerator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--model", required=True, help="model directory or Hub name")
    parser.add_argument("--data_dir", default="embedded", help="stories, or a directory that `storyend prepare` wrote")
    parser.add_argument("--split", default="test")
    parser.add_argument("--output_dir", help="directory for the results; default: they are only printed")
    parser.add_argument("--batch_size", type=int, default=128, help="stories in a batch, over all processes")
    parser.add_argument("--num_beams", type=int, default=1)
    parser.add_argument("--max_stories", type=int, help="use only the first N stories")
    parser.add_argument("--bootstrap_samples", type=int, default=0, help="for confidence intervals")
    parser.add_argument("--cloze", help="Story Cloze CSV file")
    parser.add_argument("--ablations", action="store_true", help="also measure what the model makes of its input")
    arguments = parser.parse_args()

    accelerator = start_accelerator()
    options = EvaluateOptions(**vars(arguments), name=arguments.model, dataset_id=arguments.data_dir)
    evaluation = evaluate(options, accelerator=accelerator)
    if accelerator.is_main_process:
        print(evaluation.to_markdown(arguments.model))
    accelerator.end_training()


if __name__ == "__main__":
    main()
