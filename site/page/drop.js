// What was dropped or chosen, as [path, File] pairs; folders with all that is in them. left: 0, or after how many files
// the others were left.
const MOST_FILES = 20_000;

export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return { ...distinct([...transfer.files].map((file) => [file.name, file])), folder: "" };
  const files = [];
  let left = false;
  for (const entry of entries) left = !(await gather(entry, "", files)) || left;
  const folder = entries.length === 1 && entries[0].isDirectory ? entries[0].name : "";
  return { ...distinct(files), folder, left: left ? MOST_FILES : 0 };
}

export function chosen(input) {
  const files = [...input.files].map((file) => [file.webkitRelativePath || file.name, file]);
  const folder = input.webkitdirectory && files.length ? files[0][0].split("/")[0] : "";
  return { ...distinct(files), folder };
}

// Two files of one name come from two folders, or from what a search found: the second has a number put to its name.
// renamed: [name, name here] of those.
function distinct(files) {
  const taken = new Set(files.map(([path]) => path));
  const seen = new Set();
  const renamed = [];
  const all = files.map(([path, file]) => {
    let own = path;
    for (let n = 2; seen.has(own); n++) {
      const numbered = path.replace(/^(.*\/)?([^/]+?)(\.[^/]*)?$/, `$1$2 (${n})$3`);
      if (!taken.has(numbered)) own = numbered;
    }
    seen.add(own);
    taken.add(own);
    if (own !== path) renamed.push([path, own]);
    return [own, file];
  });
  return { files: all, renamed };
}

// What is to be said of how they were taken.
export function notesOf({ renamed = [], left = 0 }) {
  const [[name, own] = []] = renamed;
  const more = renamed.length > 1 ? `, and ${renamed.length - 1} more likewise` : "";
  return [
    name && `Several files are called ${name}: the second is ${own} here${more}.`,
    left && `These are the first ${left.toLocaleString("en")} files: the others were not taken.`,
  ].filter(Boolean);
}

// Whether all of it was taken.
async function gather(entry, above, files) {
  if (files.length >= MOST_FILES) return false;
  const path = above + entry.name;
  if (entry.isFile) {
    files.push([path, await new Promise((take, fail) => entry.file(take, fail))]);
    return true;
  }
  const reader = entry.createReader();
  let all = true;
  for (;;) {
    // A folder is told in pieces of a hundred.
    const some = await new Promise((take, fail) => reader.readEntries(take, fail));
    if (!some.length) return all;
    for (const inner of some) all = (await gather(inner, `${path}/`, files)) && all;
  }
}
