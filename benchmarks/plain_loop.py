"""
The model as one would first write it: what the benchmarks compare with.

The same equations and the same losses as the package's model, in plain PyTorch: two `nn.LSTMCell`, a step after the
other over padded batches; attention by `bmm` over the sources as they are; graph vectors at every position, whether a
triple was seen before or not; logits of every step, padding included.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration

IGNORED = -100

State = list[tuple[torch.Tensor, torch.Tensor]]  # hidden state and cell of each layer
Memory = tuple[torch.Tensor, torch.Tensor | None, torch.Tensor]  # states, graph vectors and mask of a sentence


class PlainGraphAttention(nn.Module):
    """Graph vectors of one sentence by graph attention, at every position."""

    def __init__(self, size: int):
        super().__init__()
        self.head_projection, self.relation_projection, self.tail_projection = (
            nn.Linear(size, size, bias=False) for _ in range(3)
        )
        self.score_scale = size**-0.5

    def forward(
        self,
        heads: torch.Tensor,
        relations: torch.Tensor,
        tails: torch.Tensor,
        mask: torch.Tensor,
        states: torch.Tensor,
    ) -> torch.Tensor:
        pairs = torch.tanh(self.head_projection(heads) + self.tail_projection(tails))
        scores = (self.relation_projection(relations) * pairs).sum(-1) * self.score_scale
        weights = masked_softmax(scores, mask)
        return (weights.unsqueeze(-1) * torch.cat((heads, tails), dim=-1)).sum(-2)


class PlainContextualAttention(nn.Module):
    """Graph vectors of one sentence by contextual attention, every triple of every position read by a GRU."""

    def __init__(self, size: int, hidden_size: int):
        super().__init__()
        self.reader = nn.GRU(size, size, bidirectional=True, batch_first=True)
        self.memory_scorer = nn.Linear(2 * size, hidden_size, bias=False)
        self.score_scale = hidden_size**-0.5

    def forward(
        self,
        heads: torch.Tensor,
        relations: torch.Tensor,
        tails: torch.Tensor,
        mask: torch.Tensor,
        states: torch.Tensor,
    ) -> torch.Tensor:
        triples = torch.stack((heads, relations, tails), dim=-2)
        _, last = self.reader(triples.flatten(0, 2))
        memories = last.transpose(0, 1).flatten(1).view(*mask.shape, -1)
        scores = (self.memory_scorer(memories) * states.unsqueeze(-2)).sum(-1) * self.score_scale
        weights = masked_softmax(scores, mask)
        return (weights.unsqueeze(-1) * memories).sum(-2)


class PlainLoop(nn.Module):
    """Story in, loss out: `forward` takes the tensors that the package's model takes."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__()
        size, hidden, graph = config.embedding_size, config.hidden_size, config.graph_size
        self.config = config
        self.score_scale = hidden**-0.5
        self.embed_tokens = nn.Embedding(config.vocab_size, size)
        self.cells = nn.ModuleList(
            nn.LSTMCell(size + hidden if layer == 0 else hidden, hidden) for layer in range(config.num_layers)
        )
        self.state_scorer = nn.Linear(hidden, hidden, bias=False)
        self.merge = nn.Linear(hidden + graph, hidden)
        self.lm_head = nn.Linear(hidden, config.vocab_size)
        if config.knowledge is None:
            return
        self.knowledge_scorer = nn.Linear(graph, hidden, bias=False)
        self.embed_relations = nn.Embedding(config.num_relations, size)
        by_graph = config.knowledge == "graph_attention"
        self.knowledge = PlainGraphAttention(size) if by_graph else PlainContextualAttention(size, hidden)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        labels: torch.Tensor,
        triple_ids: torch.Tensor | None = None,
        triple_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        loss, state, memory = self.encode(input_ids, attention_mask, triple_ids, triple_mask, is_supervised=True)
        start = labels.new_full((labels.shape[0], 1), self.config.bos_token_id)
        words = torch.cat((start, labels[:, :-1].clamp(min=0)), dim=1)
        states, _ = self.read(words, torch.ones_like(words, dtype=torch.bool), state, memory)
        return (loss + cross_entropy_sum(self.logits(states), labels)) / (labels != IGNORED).sum()

    def encode(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        triple_ids: torch.Tensor | None,
        triple_mask: torch.Tensor | None,
        is_supervised: bool,
    ) -> tuple[torch.Tensor, State, Memory]:
        """Read the sentences: sum of their losses if they are supervised, state after the last, and its memory."""
        word_mask = attention_mask.bool()
        zeros = self.merge.weight.new_zeros(input_ids.shape[0], self.config.hidden_size)
        state, memory = [(zeros, zeros)] * self.config.num_layers, None
        loss = zeros.new_zeros(())
        for sentence in range(input_ids.shape[1]):
            words, mask = input_ids[:, sentence], word_mask[:, sentence]
            steps = functional.pad(mask, (1, 0), value=True) & mask.any(dim=1, keepdim=True)
            start = words.new_full((words.shape[0], 1), self.config.bos_token_id)
            states, state = self.read(torch.cat((start, words), dim=1), steps, state, memory)
            if sentence > 0 and is_supervised:
                targets = self.targets(words, mask)
                loss = loss + self.config.encoder_loss_weight * cross_entropy_sum(self.logits(states), targets)
            graphs = self.graph_vectors(triple_ids, triple_mask, sentence, states[:, 1:])
            memory = (states[:, 1:], graphs, mask)
        return loss, state, memory

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """A step after the other, as they would be made while reading."""
        return torch.stack([self.lm_head(state) for state in states.unbind(1)], dim=1)

    @torch.no_grad()
    def generate(self, lengths: torch.Tensor, num_beams: int = 1, **story: torch.Tensor) -> torch.Tensor:
        """
        Endings of `lengths` [B] words each, [B, longest]: greedy, or the best of `num_beams` beams. All are written on
        until the longest is complete; what stands behind the others means nothing.
        """
        _, state, memory = self.encode(**story, is_supervised=False)
        batch_size = story["input_ids"].shape[0]
        rows = torch.arange(batch_size).repeat_interleave(num_beams)
        state, memory = select_rows(state, rows), tuple(t if t is None else t.index_select(0, rows) for t in memory)
        words = torch.full((batch_size * num_beams, 1), self.config.bos_token_id)
        # At first all beams of a story are the same: only one of them counts.
        scores = torch.full((batch_size, num_beams), -1e9).index_fill_(1, torch.tensor([0]), 0.0)
        real = torch.ones(batch_size * num_beams, 1, dtype=torch.bool)
        endings = torch.zeros(batch_size, int(lengths.max()), dtype=torch.long)
        for num_words in range(1, endings.shape[1] + 1):
            states, state = self.read(words[:, -1:], real, state, memory)
            logits = self.lm_head(states[:, -1])
            logits[:, [self.config.unk_token_id, self.config.pad_token_id, self.config.bos_token_id]] = float("-inf")
            if num_beams == 1:
                words = torch.cat((words, logits.argmax(dim=-1, keepdim=True)), dim=1)
            else:
                totals = (logits.log_softmax(dim=-1).view(batch_size, num_beams, -1) + scores.unsqueeze(-1)).flatten(1)
                scores, best = totals.topk(num_beams)
                beams = best // logits.shape[-1] + torch.arange(batch_size).unsqueeze(1) * num_beams
                words = torch.cat((words[beams.flatten()], (best % logits.shape[-1]).view(-1, 1)), dim=1)
                state = select_rows(state, beams.flatten())
            complete = (lengths == num_words).nonzero().squeeze(1)
            endings[complete, :num_words] = words.view(batch_size, num_beams, -1)[complete, 0, 1:]
        return endings

    def read(
        self, words: torch.Tensor, steps: torch.Tensor, state: State, memory: Memory | None
    ) -> tuple[torch.Tensor, State]:
        """States [B, J, D] of every step, and the state after the last one."""
        states = []
        vectors = self.embed_tokens(words)
        for step in range(words.shape[1]):
            below = torch.cat((vectors[:, step], self.context(state[-1][0], memory)), dim=1)
            keep, new_state = steps[:, step : step + 1], []
            for cell, (old_hidden, old_cell) in zip(self.cells, state, strict=True):
                new_hidden, new_cell = cell(below, (old_hidden, old_cell))
                below = torch.where(keep, new_hidden, old_hidden)
                new_state.append((below, torch.where(keep, new_cell, old_cell)))
            state = new_state
            states.append(below)
        return torch.stack(states, dim=1), state

    def context(self, query: torch.Tensor, memory: Memory | None) -> torch.Tensor:
        if memory is None:
            return torch.zeros_like(query)
        states, graphs, mask = memory
        query = query * self.score_scale
        reads = [attend(query @ self.state_scorer.weight, states, mask)]
        if graphs is not None:
            reads.append(attend(query @ self.knowledge_scorer.weight, graphs, mask))
        return self.merge(torch.cat(reads, dim=1))

    def graph_vectors(
        self, triple_ids: torch.Tensor, triple_mask: torch.Tensor, sentence: int, states: torch.Tensor
    ) -> torch.Tensor | None:
        if self.config.knowledge is None:
            return None
        heads, relations, tails = triple_ids[:, sentence].unbind(-1)
        return self.knowledge(
            self.embed_tokens(heads),
            self.embed_relations(relations),
            self.embed_tokens(tails),
            triple_mask[:, sentence].bool(),
            states,
        )

    def targets(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The words, the end symbol behind the last one, then what the loss ignores."""
        targets = functional.pad(words.masked_fill(~mask, IGNORED), (0, 1), value=IGNORED)
        lengths = mask.sum(dim=1, keepdim=True)
        ends = torch.full_like(lengths, self.config.eos_token_id).masked_fill(lengths == 0, IGNORED)
        return targets.scatter(1, lengths, ends)

    @torch.no_grad()
    def copy_weights(self, model: IncrementalEncoderForEndingGeneration) -> PlainLoop:
        """Take over the weights of the package's model, so that both must have the same loss."""
        source, target = model.state_dict(), self.state_dict()
        size = self.config.hidden_size
        for layer in range(self.config.num_layers):
            gates = source[f"encoder.lstm.step_gates.{layer}.weight"]
            words = source["encoder.lstm.word_gates.weight"] if layer == 0 else gates[:, :0]
            bias = source["encoder.lstm.word_gates.bias" if layer == 0 else f"encoder.lstm.step_gates.{layer}.bias"]
            target[f"cells.{layer}.weight_ih"].copy_(torch.cat((words, gates[:, :size]), dim=1))
            target[f"cells.{layer}.weight_hh"].copy_(gates[:, size:])
            target[f"cells.{layer}.bias_ih"].copy_(bias)
            target[f"cells.{layer}.bias_hh"].zero_()
        for name, tensor in target.items():
            if not name.startswith("cells."):
                tensor.copy_(source[_package_name(name)])
        return self


def select_rows(state: State, rows: torch.Tensor) -> State:
    return [(hidden.index_select(0, rows), cell.index_select(0, rows)) for hidden, cell in state]


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return scores.masked_fill(~mask, -1e9).softmax(dim=-1) * mask


def attend(query: torch.Tensor, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = masked_softmax(torch.bmm(vectors, query.unsqueeze(2)).squeeze(2), mask)
    return torch.bmm(weights.unsqueeze(1), vectors).squeeze(1)


def cross_entropy_sum(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum")


def _package_name(name: str) -> str:
    if name.startswith("lm_head."):
        return name
    if name.startswith("knowledge.reader."):
        direction = "backward" if name.endswith("_reverse") else "forward"
        weight = name.removeprefix("knowledge.reader.").removesuffix("_reverse").removesuffix("_l0")
        return f"encoder.knowledge.{direction}_reader.{weight}"
    parts = {"state_scorer": "attention.", "knowledge_scorer": "attention.", "merge": "attention."}
    return (
        "encoder." + parts.get(name.split(".")[0], "knowledge." if name.startswith("embed_relations") else "") + name
    )
