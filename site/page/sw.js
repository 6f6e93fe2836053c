// The page without a network: every file of this version is kept, under names that change with what is in them.
const VERSION = "{{version}}";
const FILES = [
/* {{files}} */
];

self.addEventListener("install", (event) => {
  event.waitUntil(
    (async () => {
      const held = await caches.open(VERSION);
      // The page fetches them for itself just now: from the browser's cache they come without a second download.
      await held.addAll(FILES.map((name) => new Request(name, { cache: name === "./" ? "no-cache" : "default" })));
      await self.skipWaiting();
    })(),
  );
});

self.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) if (name !== VERSION) await caches.delete(name);
      await self.clients.claim();
    })(),
  );
});

self.addEventListener("fetch", (event) => {
  const address = new URL(event.request.url);
  if (event.request.method !== "GET" || address.origin !== self.location.origin) return;
  event.respondWith(
    (async () => {
      const held = await caches.open(VERSION);
      const whole = event.request.mode === "navigate" ? "./" : event.request;
      return (await held.match(whole, { ignoreSearch: true })) ?? fetch(event.request);
    })(),
  );
});
