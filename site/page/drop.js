// What was dropped or chosen, as [path, File] pairs; folders with all that is in them.
const MOST_FILES = 20_000;

export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return { files: [...transfer.files].map((file) => [file.name, file]), folder: "" };
  const files = [];
  for (const entry of entries) await gather(entry, "", files);
  const folder = entries.length === 1 && entries[0].isDirectory ? entries[0].name : "";
  return { files, folder };
}

export function chosen(input) {
  const files = [...input.files].map((file) => [file.webkitRelativePath || file.name, file]);
  const folder = input.webkitdirectory && files.length ? files[0][0].split("/")[0] : "";
  return { files, folder };
}

async function gather(entry, above, files) {
  if (files.length >= MOST_FILES) return;
  const path = above + entry.name;
  if (entry.isFile) {
    files.push([path, await new Promise((take, fail) => entry.file(take, fail))]);
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    // A folder is told in pieces of a hundred.
    const some = await new Promise((take, fail) => reader.readEntries(take, fail));
    if (!some.length) return;
    for (const inner of some) await gather(inner, `${path}/`, files);
  }
}
