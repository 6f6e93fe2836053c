// Files of the page as files of Python: those that were dropped are read in slices, where they lie; a new one goes to
// the browser's private disk as it is written, so that memory does not grow with it.
//
// Emscripten's own WORKERFS does the reading part, but lets a file that vanishes end Python: here that is an error of
// reading, with a number, as on any other machine.
const ENOENT = 44;
const EIO = 29;
const ENOSPC = 51;
const EROFS = 69;
const FOLDER = 0o40755;
const FILE = 0o100644;
const BLOCK = 1 << 18; // Small reads come in great number, and each costs a round trip to the browser's own process.
const MOST_BLOCKS = 32;
// Without a private disk a new file is held in memory.
const MOST_IN_MEMORY = 1_000_000_000;
const A_DAY = 86_400_000;

export function openDisk(FS) {
  const reader = new FileReaderSync();
  const blocks = new Map();
  let mounts = 0;
  let inodes = 1 << 20;

  function fail(number) {
    throw new FS.ErrnoError(number);
  }

  function slice(file, start, end) {
    try {
      return new Uint8Array(reader.readAsArrayBuffer(file.slice(start, end)));
    } catch {
      return fail(EIO);
    }
  }

  function block(node, number) {
    const key = `${node.id}:${number}`;
    let held = blocks.get(key);
    if (held) {
      blocks.delete(key);
    } else {
      held = slice(node.file, number * BLOCK, Math.min(node.size, (number + 1) * BLOCK));
      if (blocks.size >= MOST_BLOCKS) blocks.delete(blocks.keys().next().value);
    }
    blocks.set(key, held);
    return held;
  }

  function read(node, buffer, offset, length, position) {
    const end = Math.min(node.size, position + length);
    if (end <= position) return 0;
    if (length >= BLOCK) {
      const part = slice(node.file, position, end);
      buffer.set(part, offset);
      return part.length;
    }
    let at = position;
    while (at < end) {
      const number = Math.floor(at / BLOCK);
      const inside = at - number * BLOCK;
      const held = block(node, number);
      const part = held.subarray(inside, Math.min(held.length, inside + end - at));
      if (!part.length) break;
      buffer.set(part, offset + at - position);
      at += part.length;
    }
    return at - position;
  }

  function attributes(node) {
    const time = new Date(node.written);
    return {
      dev: 1, ino: node.id, mode: node.mode, nlink: 1, uid: 0, gid: 0, rdev: 0, size: node.size ?? 4096,
      atime: time, mtime: time, ctime: time, blksize: 4096, blocks: Math.ceil((node.size ?? 4096) / 512),
    }; // prettier-ignore
  }

  function seek(stream, offset, whence) {
    const from = whence === 1 ? stream.position : whence === 2 ? stream.node.size : 0;
    if (from + offset < 0) fail(28);
    return from + offset;
  }

  const folderOperations = {
    getattr: attributes,
    setattr() {},
    lookup() {
      return fail(ENOENT);
    },
    readdir: (node) => [".", "..", ...Object.keys(node.contents)],
    mknod: () => fail(EROFS),
    rename: () => fail(EROFS),
    unlink: () => fail(EROFS),
    rmdir: () => fail(EROFS),
    symlink: () => fail(EROFS),
  };

  // What was dropped.

  const givenStreams = {
    open(stream) {
      if ((stream.flags & 3) !== 0) fail(EROFS);
    },
    read: (stream, buffer, offset, length, position) => read(stream.node, buffer, offset, length, position),
    write: () => fail(EROFS),
    llseek: seek,
  };

  function node(parent, name, mode, operations, streams) {
    const made = FS.createNode(parent, name, mode, 0);
    made.id = ++inodes;
    made.mode = mode;
    made.written = Date.now();
    made.node_ops = operations;
    made.stream_ops = streams;
    if (mode === FOLDER) made.contents = Object.create(null);
    if (parent) parent.contents[name] = made;
    return made;
  }

  const given = {
    mount({ opts }) {
      const root = node(null, "/", FOLDER, folderOperations, { llseek: seek });
      for (const [path, file] of opts.files) {
        const pieces = path.split("/").filter((piece) => piece && piece !== "." && piece !== "..");
        const name = pieces.pop();
        let parent = root;
        for (const piece of pieces) {
          parent = parent.contents[piece] ?? node(parent, piece, FOLDER, folderOperations, { llseek: seek });
        }
        const made = node(parent, name, FILE, folderOperations, givenStreams);
        made.file = file;
        made.size = file.size;
        made.written = file.lastModified;
      }
      return root;
    },
  };

  // What is written: into handles of the private disk, which can be written to without waiting for them.

  const writtenStreams = {
    open() {},
    read(stream, buffer, offset, length, position) {
      const { node: own } = stream;
      const end = Math.min(own.size, position + length);
      if (end <= position) return 0;
      return own.store.read(buffer.subarray(offset, offset + end - position), position);
    },
    write(stream, buffer, offset, length, position) {
      const { node: own } = stream;
      try {
        own.store.write(buffer.subarray(offset, offset + length), position);
      } catch {
        return fail(ENOSPC);
      }
      own.size = Math.max(own.size, position + length);
      return length;
    },
    llseek: seek,
    fsync: (stream) => stream.node.store.flush?.(),
  };

  function writtenFolder(stores, room) {
    const operations = {
      ...folderOperations,
      setattr(own, wanted) {
        if (wanted.size !== undefined && own.store) {
          own.store.truncate(wanted.size);
          own.size = wanted.size;
        }
      },
      mknod(parent, name, mode) {
        const store = FS.isFile(mode) ? stores.shift() : undefined;
        if (!store) return fail(ENOSPC);
        const made = node(parent, name, FILE, operations, writtenStreams);
        made.store = store;
        made.size = 0;
        return made;
      },
      rename(own, folder, name) {
        delete own.parent.contents[own.name];
        own.name = name;
        folder.contents[name] = own;
      },
      unlink(parent, name) {
        delete parent.contents[name];
      },
      statfs: () => ({ bsize: 4096, frsize: 4096, blocks: room / 4096, bfree: room / 4096, bavail: room / 4096 }),
    };
    return { mount: () => node(null, "/", FOLDER, operations, { llseek: seek }) };
  }

  return {
    // The folder in which these files are from now on.
    mount(files) {
      const folder = `/files/${++mounts}`;
      FS.mkdirTree(folder);
      FS.mount(given, { files }, folder);
      return folder;
    },

    // A folder for one new file. take: what became of it, as a File; close: gives back what was held.
    async output() {
      const folder = `/written/${++mounts}`;
      FS.mkdirTree(folder);
      const place = await privateDisk();
      const store = place ? await diskStore(place, mounts) : memoryStore();
      const estimate = place ? await navigator.storage.estimate() : { quota: MOST_IN_MEMORY, usage: 0 };
      const root = writtenFolder([store], Math.floor(Math.max(0, estimate.quota - estimate.usage) / 4096) * 4096);
      FS.mount(root, {}, folder);
      return {
        folder,
        async take(name) {
          const size = FS.stat(`${folder}/${name}`).size;
          return store.file(name, size);
        },
        close() {
          FS.unmount(folder);
          store.close();
        },
      };
    },
  };
}

async function privateDisk() {
  try {
    const root = await navigator.storage.getDirectory();
    const own = await root.getDirectoryHandle("written", { create: true });
    const probe = await own.getFileHandle("probe", { create: true });
    return typeof probe.createSyncAccessHandle === "function" ? own : null;
  } catch {
    return null; // No secure page, or a private window of some browsers.
  }
}

async function diskStore(folder, number) {
  // What was written a day ago has been saved, or is not wanted.
  for await (const [old] of folder.entries()) {
    const time = Number(old.split("-")[1] ?? 0);
    if (Date.now() - time > A_DAY) await folder.removeEntry(old).catch(() => {});
  }
  const handle = await folder.getFileHandle(`written-${Date.now()}-${number}`, { create: true });
  const access = await handle.createSyncAccessHandle();
  access.truncate(0);
  let open = true;
  const close = () => {
    if (open) access.close();
    open = false;
  };
  return {
    read: (part, at) => access.read(part, { at }),
    write(part, at) {
      if (access.write(part, { at }) !== part.length) throw new Error("the disk is full");
    },
    truncate: (size) => access.truncate(size),
    flush: () => access.flush(),
    close,
    async file() {
      access.flush();
      close();
      return handle.getFile();
    },
  };
}

function memoryStore() {
  let held = new Uint8Array(1 << 20);
  let size = 0;
  function room(end) {
    if (end > MOST_IN_MEMORY) throw new Error("too large for memory");
    if (end <= held.length) return;
    const wider = new Uint8Array(Math.min(MOST_IN_MEMORY, Math.max(end, 2 * held.length)));
    wider.set(held);
    held = wider;
  }
  return {
    read(part, at) {
      part.set(held.subarray(at, at + part.length));
      return part.length;
    },
    write(part, at) {
      room(at + part.length);
      held.set(part, at);
      size = Math.max(size, at + part.length);
    },
    truncate(end) {
      room(end);
      held.fill(0, end);
      size = end;
    },
    close() {},
    file: async (name) => new File([held.subarray(0, size)], name),
  };
}
