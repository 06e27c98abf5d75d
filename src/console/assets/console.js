// Keeps lists fresh: when the server says that a request has changed, the page's content is fetched
// again, unless somebody is writing in it.
const live = document.querySelector('main');
const isBusy = () => {
  const { activeElement } = document;
  const field = activeElement?.matches('input, textarea') === true;
  return field || [...document.querySelectorAll('textarea, input[type=file]')].some((f) => f.value);
};

async function refresh() {
  if (isBusy()) return offer();
  const answer = await fetch(location.href, { headers: { 'effectmatch-refresh': 'yes' } });
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const notice = live.querySelectorAll('.notice');
  live.replaceChildren(...notice, ...fresh.querySelector('main').childNodes);
  document.querySelector('nav').replaceWith(fresh.querySelector('nav'));
}

function offer() {
  if (document.querySelector('.changed') !== null) return;
  const note = document.createElement('p');
  note.className = 'notice changed';
  note.setAttribute('role', 'status');
  const link = document.createElement('a');
  link.href = location.href;
  link.textContent = 'Something has changed meanwhile. Show it.';
  note.append(link);
  live.prepend(note);
}

const events = new EventSource('/events');
events.addEventListener('request', refresh);
