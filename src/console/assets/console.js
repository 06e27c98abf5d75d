// Keeps pages fresh: when the server says that a request has changed, the page is fetched again,
// unless that would close what is being read or lose what is being written.
const main = document.querySelector('main');

function isBusy() {
  const busy =
    'dialog[open], main details[open]:not(#signer details, #resolver details), main button:disabled, main .problem, #new-passkey';
  if (document.querySelector(busy) !== null) return true;
  const fields = [...document.querySelectorAll('main textarea, main input:not([type=hidden])')];
  return fields.some((field) => field === document.activeElement || isFilled(field));
}

function isFilled(field) {
  return field.type === 'checkbox' ? field.checked : field.value !== '';
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { 'effectmatch-refresh': 'yes' } });
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  if (isBusy()) return offerRefresh();
  const notices = main.querySelectorAll('.notice:not(.changed)');
  main.replaceChildren(...notices, ...fresh.querySelector('main').childNodes);
  document.querySelector('nav').replaceWith(fresh.querySelector('nav'));
  document.dispatchEvent(new Event('refreshed'));
}

function offerRefresh() {
  if (document.querySelector('.changed') !== null) return;
  const note = document.createElement('p');
  note.className = 'notice changed';
  note.setAttribute('role', 'status');
  const link = document.createElement('a');
  link.href = location.href;
  link.textContent = 'This page is out of date. Show the changes.';
  note.append(link);
  main.prepend(note);
}

// After several requests were answered, the page shows those that are left.
document.addEventListener('answered', () => {
  main.querySelector('.changed')?.remove();
  void refresh();
});

const [, section, shown] = location.pathname.split('/');

const { lastEvent } = document.body.dataset;
new EventSource(`/events?after=${lastEvent}`).addEventListener('request', ({ data: id }) => {
  if (section === 'requests' && shown !== id) return;
  if (isBusy()) return offerRefresh();
  void refresh();
});

// What a request was proposed for may change at any time: the server looks at it while it is read.
const LOOK_MS = 10_000;
if (section === 'requests' && document.querySelector('#signer') !== null)
  setInterval(() => document.hidden || fetch(`/requests/${shown}/check`).catch(() => {}), LOOK_MS);
