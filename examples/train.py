"""
Train a story ending model, on one CPU or on a cluster.

    accelerate launch examples/train.py                                     # the stories that come with the package
    accelerate launch examples/train.py --data_dir prepared --output_dir my_model --system ie-msa-ca
    torchrun --nproc_per_node 2 examples/train.py options.yaml --max_steps 1000

An interrupted run resumes when it is started again. `--help` lists all options.
"""

from hf_storyend.training import TrainingRun, parse_options, run_as_program


def main() -> None:
    options = parse_options(description=__doc__.strip().splitlines()[0])
    with TrainingRun(options) as run:
        for update in run.updates():
            for batch in update.batches():  # several with gradient accumulation
                output = run.model(**batch)
                run.backward(output)
            run.step()  # clips gradients and updates the weights; then logs, evaluates and saves as due
        run.finish()


if __name__ == "__main__":
    run_as_program(main)
