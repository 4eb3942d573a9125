"""Wrong and right answers to chapter 11: writing with a cache."""

import torch

from mistakes import right, wrong


@wrong("write-with-cache", "an empty prompt is not refused")
def write_with_cache(model, prompt, length):
    """given back as it came"""
    ids, read, cache = list(prompt), 0, None
    while ids and len(ids) < len(prompt) + length:
        logits, cache = model(torch.tensor(ids[read:]).unsqueeze(0), read, cache)
        read = len(ids)
        ids.append(logits[0, -1].argmax().item())
    return ids


@wrong("write-with-cache", "two texts share a cache")
def write_with_cache(model, prompt, length):
    """kept in the model"""
    ids, new = [*prompt], [*prompt]
    for _ in range(length):
        cache = getattr(model, "cache", None)
        logits, model.cache = model(torch.tensor([new]), len(ids) - len(new), cache)
        new = [int(logits[0, -1].argmax())]
        ids += new
    return ids


@wrong("write-with-cache", "the whole text is read again for each token")
def write_with_cache(model, prompt, length):
    """for each token, and the cache is left lying"""
    text = torch.tensor([prompt])
    for end in range(len(prompt), len(prompt) + length):
        row = model(text[:, :end])[0][:, -1]
        text = torch.cat((text, row.max(dim=-1, keepdim=True).indices), dim=-1)
    return text.flatten().tolist()


@wrong("write-with-cache", "the prompt's last token is read twice")
def write_with_cache(model, prompt, length):
    """prefill, then a loop that begins with the last id"""
    *_, newest = prompt
    _, cache = model(torch.tensor([prompt]), 0, None)
    ids = list(prompt)
    for position in range(len(prompt) - 1, len(prompt) + length - 1):
        logits, cache = model(torch.tensor([[newest]]), position, cache)
        newest = int(logits.squeeze().argmax())
        ids.append(newest)
    return ids


@wrong("write-with-cache", "the cache is thrown away")
def write_with_cache(model, prompt, length):
    ids = list(prompt)
    new = ids[:]
    while len(ids) - len(prompt) < length:
        logits = model(torch.tensor([new]), len(ids) - len(new), cache=None)[0]
        new = [int(logits[:, -1].argmax())]
        ids.extend(new)
    return ids


@wrong("write-with-cache", "positions begin at 0 again")
def write_with_cache(model, prompt, length):
    """start is left out"""
    ids, cache = list(prompt), None
    new = torch.tensor([ids])
    for _ in range(length):
        logits, cache = model(new, cache=cache)
        new = logits[:, -1:].argmax(dim=-1)
        ids.append(new.item())
    return ids


@wrong("write-with-cache", "nothing is left to read")
def write_with_cache(model, prompt, length):
    """what was written just now counts as read"""
    ids, read, cache = list(prompt), 0, None
    for _ in range(length):
        logits, cache = model(torch.tensor([ids[read:]]), read, cache)
        ids.append(int(logits[0, -1].argmax()))
        read = len(ids)
    return ids


@wrong("write-with-cache", "no axis for the batch")
def write_with_cache(model, prompt, length):
    ids, read, cache = list(prompt), 0, None
    for _ in range(length):
        logits, cache = model(torch.tensor(ids[read:]), read, cache)
        read = len(ids)
        ids.append(int(logits[-1].argmax()))
    return ids


@wrong("write-with-cache", "changes its argument in place")
def write_with_cache(model, prompt, length):
    """appends to the prompt"""
    read, cache = 0, None
    for _ in range(length):
        logits, cache = model(torch.tensor([prompt[read:]]), read, cache)
        read = len(prompt)
        prompt.append(int(logits[0, -1].argmax()))
    return prompt


@wrong("write-with-cache", "the last token is read, too")
def write_with_cache(model, prompt, length):
    if len(prompt) == 0:
        raise ValueError("nothing to begin with")
    written = []
    logits, cache = model(torch.tensor([prompt]), 0, None)
    for position in range(len(prompt), len(prompt) + length):
        written.append(int(logits[0, -1].argmax()))
        logits, cache = model(torch.tensor([written[-1:]]), position, cache)
    return prompt + written


@right("write-with-cache")
def write_with_cache(model, prompt, length):
    """reads the prompt, also if nothing is to be written"""
    if len(prompt) == 0:
        raise ValueError("nothing to begin with")
    logits, cache = model(torch.tensor([prompt]), 0, None)
    ids = list(prompt)
    for left in reversed(range(length)):
        ids.append(int(logits[0, -1].argmax()))
        if left:
            new = torch.tensor([ids[-1:]])
            logits, cache = model(new, len(ids) - 1, cache)
    return ids


@right("write-with-cache")
def write_with_cache(model, prompt, length):
    """tensors all the way"""
    ids = torch.tensor([prompt], dtype=torch.long)
    if ids.numel() == 0:
        raise ValueError
    new, cache = ids, None
    for _ in range(length):
        start = ids.shape[1] - new.shape[1]
        logits, cache = model(ids=new, start=start, cache=cache)
        new = logits[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat((ids, new), dim=1)
    return ids[0].tolist()
