"""Text where weights were expected: pointers to a file that did not come along, pages of errors, code, settings.

Sources: git-lfs docs/spec.md; git-annex "pointer file"; the pages that file hosts show instead of a file.
"""

from __future__ import annotations

import json
import re

from inspector.checkpoint.source import ByteSource
from inspector.errors import InspectorError, PointerFile, UnknownFormat
from inspector.side_files import encoding_of

_LFS = re.compile(rb"version https://git-lfs[^\n]*\n(?:ext[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize (\d{1,19})")
_LFS_NBYTES = 1024
_ANNEX = re.compile(r"(?:\.\./|\./|/)*(?:\.git/)?annex/objects/[^\s]*?([A-Z0-9]+E?-[^\s/]*)\s*\Z")
_ANNEX_SIZE = re.compile(r"-s(\d{1,18})(?:-|\b)")
_XET = re.compile(r"# xet version \d+")
_LINK = re.compile(r"(?:\.\./)+blobs/[0-9a-f]{16,64}\s*\Z")
_TITLE = re.compile(r"<title[^>]*>\s*([^<]{1,120})", re.IGNORECASE)
_PYTHON = re.compile(
    r"""^(?:import\s+[\w.]+(?:\s+as\s+\w+)?(?:\s*,.*)?\s*(?:\#.*)?$|from\s+[\w.]+\s+import\s|class\s+\w+\s*[(:]|"""
    r"""(?:async\s+)?def\s+\w+\s*\(|\#!.*python|\#\s*-\*-\s*coding|@\w[\w.]*(?:\(|$))""",
    re.MULTILINE,
)
_SHELL = re.compile(r"\A#!\s*/\S*?(?:/env\s+)?(?:ba|z|da|k)?sh\b")
_YAML = re.compile(r"\A(?:---\s*\n|(?:#[^\n]*\n)*[A-Za-z_][\w.\- ]*:(?:\s[^\n]*)?\n)")
_SECTION = re.compile(r"\A(?:[#;][^\n]*\n|\s)*\[[\w .\-\"]+\]\s*\n")
_SERVER = re.compile(
    r"(?:\d{3}\s*:?\s*)?(?:not found|entry not found|access denied|unauthorized|forbidden|repository not found|"
    r"too many requests|bad gateway|service unavailable|internal server error|invalid username or password|"
    r"access to model .{1,200} is restricted)",
    re.IGNORECASE | re.DOTALL,
)
_LINK_HINT = "The download link led to a page (a login, a warning, an error). Use the direct link to the file."
# A word of the page, and what its host wants.
_PAGES = (
    ("virus scan warning", "Google Drive warns before large files. Confirm the download in a browser, or use gdown."),
    ("quota exceeded", "Google Drive has a daily limit for this file. Try again tomorrow, or find another copy."),
    ("google drive", "The link led to Google Drive's page. Use its download button, or gdown with the file's id."),
    ("github.com", "The link led to GitHub's page about the file. Use its \"raw\" link, or the release's own file."),
    ("huggingface.co", 'The link led to a page of the hub. Replace "/blob/" by "/resolve/" in it, or log in first.'),
    ("dropbox", 'The link led to Dropbox\'s page. Put "dl=1" at its end in place of "dl=0".'),
    ("onedrive", "The link led to OneDrive's page. Use its download button."),
    ("pan.baidu", "The link led to a page of Baidu's. Use its own client to download the file."),
)


def read_pointer(head: bytes) -> tuple[str, int] | None:
    """The sha256 and the size that a pointer of Git LFS names; None for any other text."""
    pointer = _LFS.match(head)
    return (pointer[1].decode(), int(pointer[2])) if pointer else None


def name_pointer(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    """The error for a pointer to a file that did not come along; None when it is none."""
    pointer = _LFS.match(head)
    if pointer:
        size = int(pointer[2])
        kind = PointerFile if _is_whole_pointer(source, head) else UnknownFormat
        return kind(
            f'{name} is a Git LFS pointer ({source.size} bytes), not the weights: "git lfs pull" fetches those, '
            f"{size:,} bytes with the sha256 {pointer[1].decode()[:12]}….",
            hint="Run it in the repository that the file is from, or download the file from its web page.",
        )
    if source.size > 2048:
        return None
    try:
        text = head.decode("utf-8").strip()
    except UnicodeDecodeError:
        return None
    annex = _ANNEX.fullmatch(text)
    if annex:
        size_said = _ANNEX_SIZE.search(annex[1])
        of = f", which has {int(size_said[1]):,} bytes" if size_said else ""
        return UnknownFormat(
            f"{name} is a git-annex pointer ({source.size} bytes), not the file itself{of}.",
            hint='Run "git annex get" (or "datalad get") for it in the repository.',
        )
    if _XET.match(text):
        found = re.search(r"filesize\s*=\s*(\d{1,19})", text)
        of = f", which has {int(found[1]):,} bytes" if found else ""
        return UnknownFormat(
            f"{name} is a Xet pointer ({source.size} bytes), not the file itself{of}.",
            hint="Check it out with git-xet, or download the file from its web page.",
        )
    if _LINK.fullmatch(text):
        return UnknownFormat(
            f'{name} is the text of a symbolic link, "{text[:80]}", not the file it led to.',
            hint="A download cache was copied without following its links: copy it with cp -L, or download again.",
        )
    return None


def _is_whole_pointer(source: ByteSource, head: bytes) -> bool:
    """Whether there is nothing else in the file: a gate lets a pointer pass, and not what hides behind one.

    docs/spec.md of git-lfs: less than 1024 bytes of text, the size on its last line.
    """
    pointer = _LFS.match(head)
    if pointer is None or source.size != len(head) or len(head) >= _LFS_NBYTES or not head.isascii():
        return False
    return head[pointer.end() :] in (b"", b"\n") and head.decode("ascii").replace("\n", "").isprintable()


def name_text(head: bytes, name: str, *, whole: bool) -> InspectorError | None:
    """The error for a text file; None when it is no text. whole: head is all of it."""
    text = _decoded(head)
    if text is None:
        return None
    body = text.lstrip("\ufeff \t\r\n")
    named = (
        _page(body, name)
        or _xml(body, name)
        or _template(body, name)
        or _json(body, name, whole=whole)
        or _code(body, name)
    )
    if named is not None:
        return named
    first = body.splitlines()[0].strip()[:60] if body.strip() else ""
    if not first:
        return UnknownFormat(f"{name} holds only blank characters.", hint="The download or copy failed; do it again.")
    if _SERVER.match(body) and len(body) < 1000:
        return UnknownFormat(
            f'{name} is the answer of a server, "{first}", not a checkpoint.',
            hint="The link is wrong, or the file asks for a login. Check the link, log in and download again.",
        )
    return _settings(body, name) or UnknownFormat(
        f'{name} is a text file that begins "{first}", not a checkpoint.',
        hint="Open the file with the weights instead.",
    )


def _decoded(head: bytes) -> str | None:
    if encoding_of(head) == "utf-16" and len(head) > 8:
        text = head[: len(head) & ~1].decode("utf-16", "replace")
        return text if text.isprintable() or ("\n" in text and "\ufffd" not in text) else None
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:
            return None
        text = head[: error.start].decode("utf-8")
    return None if any(c < " " and c not in "\t\r\n\f\x1b" for c in text) else text


def _page(body: str, name: str) -> InspectorError | None:
    lower = body[:4096].lower()
    if not (lower.startswith(("<!doctype html", "<html", "<head", "<script")) or "<html" in lower[:512]):
        return None
    title = _TITLE.search(body)
    says = f' titled "{title[1].strip()}"' if title else ""
    hint = next((hint for word, hint in _PAGES if word in lower), _LINK_HINT)
    return UnknownFormat(f"{name} is a web page{says}, not a checkpoint.", hint=hint)


def _xml(body: str, name: str) -> InspectorError | None:
    if not body.startswith(("<?xml", "<Error", "<net ")):
        return None
    if re.search(r"<net\s[^>]*\bversion=", body):
        return UnknownFormat(
            f"{name} is the graph of an OpenVINO model (.xml); its numbers are in the .bin beside it, without names.",
            hint="Open the ONNX or PyTorch file it was converted from.",
        )
    code = re.search(r"<Code>([A-Za-z]{1,40})</Code>", body)
    if code:
        return UnknownFormat(
            f"{name} is an XML document, not a checkpoint: a storage service's error {code[1]}.",
            hint="The link has expired or needs permission. Get a new link.",
        )
    return UnknownFormat(
        f"{name} is an XML document, not a checkpoint.",
        hint="A storage service's error message looks so; check the link.",
    )


def _template(body: str, name: str) -> InspectorError | None:
    if not body.startswith(("{{", "{%", "{#")):
        return None
    return UnknownFormat(
        f"{name} is a Jinja template, not a checkpoint.", hint="It lays out text, such as messages; open the weights."
    )


# A key near the beginning of a JSON object, what the file is, and what to do.
_JSON = (
    ("weight_map", "the index of a sharded checkpoint", "Open it together with the files it names, in their folder."),
    ("weightsManifest", "a TensorFlow.js model", "Open the PyTorch checkpoint of the same model."),
    ("nbformat", "a Jupyter notebook", "It is code; open the file with the weights."),
    ("peft_type", "the settings of a PEFT adapter", "Open adapter_model.safetensors, or the whole folder."),
    ("architectures", "a model's configuration", "The weights lie beside it; open them, or the whole folder."),
    ("model_type", "a model's configuration", "The weights lie beside it; open them, or the whole folder."),
    ("added_tokens", "a tokenizer", "The weights lie beside it; open them, or the whole folder."),
    ("image_processor_type", "a preprocessor's settings", "The weights lie beside it; open them, or the whole folder."),
    ("itemInfoEntries", "the manifest of a Core ML package", "Open the PyTorch checkpoint it was converted from."),
    ("zarr_format", "part of a Zarr array store", "Read the folder with zarr, save the arrays with numpy.savez."),
)


def _json(body: str, name: str, *, whole: bool) -> InspectorError | None:
    if body[:1] not in ("{", "["):
        return None
    for key, says, hint in _JSON:
        if f'"{key}"' in body:
            return UnknownFormat(f"{name} is JSON text, {says}, not a checkpoint.", hint=hint)
    if whole and len(body) < 4096:
        try:
            made = json.loads(body)
        except (ValueError, RecursionError):
            made = None
        if isinstance(made, dict):
            error = made.get("error") or made.get("message")
            if isinstance(error, str) and len(made) <= 5:
                return UnknownFormat(
                    f'{name} is JSON text, the answer of a server: "{error[:120]}", not a checkpoint.',
                    hint="The link is wrong, or the file asks for a login. Check the link, log in and download again.",
                )
    if re.match(r"\[[\w .\-\"]+\]\s*\n", body):
        return None  # A section of an INI or TOML file.
    return UnknownFormat(
        f"{name} is JSON text, not a checkpoint.", hint="Configuration files lie beside the weights; open the weights."
    )


def _code(body: str, name: str) -> InspectorError | None:
    if _SHELL.match(body):
        return UnknownFormat(
            f"{name} is a shell script, not a checkpoint.",
            hint="Read it before you run it: it probably downloads the weights. Open those.",
        )
    found = len(_PYTHON.findall(body))
    if found >= 2 or (found and body.startswith(("import ", "from ", "#!", '"""', "'''"))):
        return UnknownFormat(
            f"{name} is Python source: the model's code, not its weights.",
            hint="Open the file with the weights instead.",
        )
    return None


def _settings(body: str, name: str) -> InspectorError | None:
    """Text formats that lie beside weights."""
    lines = [line for line in body.splitlines()[:12] if line.strip()]
    if lines[0].strip() == "7767517":
        return UnknownFormat(
            f"{name} is the graph of an ncnn model (.param); its numbers are in the .bin beside it, without names.",
            hint="Open the PyTorch checkpoint it was converted from.",
        )
    if lines[0].strip().lower() in ("[net]", "[network]"):
        return UnknownFormat(
            f"{name} is a Darknet configuration (.cfg), not its weights.",
            hint="The .weights file beside it has the numbers; convert both to PyTorch.",
        )
    if re.search(r"^\s*layers?\s*\{", body, re.MULTILINE):
        return UnknownFormat(
            f"{name} is a Caffe network description (.prototxt), not its weights.",
            hint="The .caffemodel beside it has the numbers.",
        )
    # Two lines of prose may have a comma each.
    commas = [line.count(",") for line in lines]
    if len(lines) >= (2 if commas[0] > 1 else 4) and commas[0] and all(n == commas[0] for n in commas):
        return UnknownFormat(
            f"{name} is a CSV table with {commas[0] + 1:,} columns, not a checkpoint.",
            hint="It is data or a training log. Open the file with the weights.",
        )
    if _SECTION.match(body) or (len(lines) >= 2 and _YAML.match(body)):
        return UnknownFormat(
            f'{name} is a settings or notes file in text that begins "{lines[0].strip()[:60]}", not a checkpoint.',
            hint="Settings lie beside the weights; open the weights, or the whole folder.",
        )
    return None
