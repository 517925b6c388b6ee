"""
Numbers about a model, on as many processes as there are; the result does not depend on how many.

    accelerate launch examples/evaluate.py --model my_model --data prepared --output results
    torchrun --nproc_per_node 2 examples/evaluate.py --model my_model --data prepared --output results
"""

import argparse

from accelerate import Accelerator

from hf_storyend.evaluation import EvaluationOptions, evaluate_pretrained, save_evaluation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--model", required=True, help="directory of a model, or its name on the Hub")
    parser.add_argument("--data", default="embedded", help="stories, or a directory that `storyend prepare` wrote")
    parser.add_argument("--split", default="test")
    parser.add_argument("--output", help="directory for the results, if they are to be saved")
    parser.add_argument("--batch_size", type=int, default=128, help="stories a step, all processes together")
    parser.add_argument("--num_beams", type=int, default=1)
    parser.add_argument("--max_stories", type=int, help="the first so many stories only")
    parser.add_argument("--confidence", type=int, default=0, help="resamples for confidence intervals")
    parser.add_argument("--cloze", help="Story Cloze CSV file")
    arguments = parser.parse_args()

    accelerator = Accelerator()
    evaluation = evaluate_pretrained(
        arguments.model,
        arguments.data,
        split=arguments.split,
        accelerator=accelerator,
        cloze=arguments.cloze,
        options=EvaluationOptions(
            batch_size=arguments.batch_size,
            generation={"num_beams": arguments.num_beams},
            max_stories=arguments.max_stories,
            bootstrap_samples=arguments.confidence,
        ),
    )
    if accelerator.is_main_process:
        print(evaluation.to_markdown(arguments.model))
        if arguments.output:
            save_evaluation(
                evaluation,
                arguments.output,
                name=arguments.model,
                dataset_id=arguments.data,
                split=arguments.split,
            )
    accelerator.end_training()


if __name__ == "__main__":
    main()
