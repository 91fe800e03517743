// What survives a reload: each device's state under a key of its own, and which devices there are. Tokens end with the tab.

const PREFIX = "weir-demo:";

/** The browser keeps no more: the change that did not fit was not made. */
export class StorageFull extends Error {
  constructor() { super("the browser keeps no more than about 5 MB for this page, and this would be more"); }
}

function keep(key, text, area = localStorage) {
  try {
    area.setItem(key, text);
  } catch (error) {
    throw error.name === "QuotaExceededError" ? new StorageFull() : error;
  }
}

/** The page's own record: the owner and the devices, in the order shown. */
export const page = {
  load() { return JSON.parse(localStorage.getItem(PREFIX + "page") ?? "null"); },
  save(record) { keep(PREFIX + "page", JSON.stringify(record)); },
};

/** The store of one device. */
export function deviceStore(name) {
  const key = `${PREFIX}device:${name}`;
  return { load: () => localStorage.getItem(key), save: (text) => keep(key, text) };
}

/** A token is a secret: it stays in the tab, over reloads, and is never written to disk with the devices. */
export function tokenStore(name) {
  return {
    load: () => sessionStorage.getItem(`${PREFIX}token:${name}`),
    save: (token) => keep(`${PREFIX}token:${name}`, token, sessionStorage),
    remove: () => sessionStorage.removeItem(`${PREFIX}token:${name}`),
  };
}

export function removeDevice(name) {
  localStorage.removeItem(`${PREFIX}device:${name}`);
  tokenStore(name).remove();
}

/** Removes everything that the page keeps. */
export function removeAll() {
  for (const area of [localStorage, sessionStorage]) {
    for (const key of Object.keys(area)) if (key.startsWith(PREFIX)) area.removeItem(key);
  }
}

/**
 * One tab at a time has the devices: two that use the same numbers would be a device and its copy.
 * Where the browser has no locks (outside of HTTPS and loopback), the tabs are not kept apart.
 *
 * @param onLoss called when another tab has taken them.
 * @returns whether this tab has the devices.
 */
export function claim(onLoss) {
  if (!navigator.locks) return Promise.resolve(true);
  const steal = sessionStorage.getItem(PREFIX + "steal") !== null;
  sessionStorage.removeItem(PREFIX + "steal");
  return new Promise((resolve) => {
    navigator.locks.request(PREFIX + "devices", steal ? { steal } : { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock && new Promise(() => {}); // held until the tab is closed
    }).catch(onLoss);
  });
}

/** Loads the page again, with the devices of the other tab. */
export function takeOver() {
  sessionStorage.setItem(PREFIX + "steal", "");
  location.reload();
}
