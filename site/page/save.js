// A new file to the person's disk: streamed to the place that they choose, where the browser lets them, else downloaded.

export function offer(name, data, type) {
  const blob = data instanceof Blob ? data : new Blob([data], { type });
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 600_000);
}

// True where it was saved, false where the person thought better of it. Throws what the disk said.
export async function save(name, file) {
  if (!window.showSaveFilePicker) {
    offer(name, file);
    return true;
  }
  let handle;
  try {
    handle = await window.showSaveFilePicker({ suggestedName: name });
  } catch (error) {
    if (error.name === "AbortError") return false;
    offer(name, file);
    return true;
  }
  await file.stream().pipeTo(await handle.createWritable());
  return true;
}
