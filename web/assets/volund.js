// The whole script of the page: theme, picking bays, moving by keyboard, live parts. Nothing here is needed:
// without it every page works by forms and links, and is loaded again by hand.
const $ = (sel, at = document) => at.querySelector(sel), $$ = (sel, at = document) => [...at.querySelectorAll(sel)];
const root = document.documentElement;

// Theme: the server writes data-theme from the cookie, so nothing flashes on the next page.
function flip() {
  const dark = (root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  root.dataset.theme = dark ? 'light' : 'dark';
  document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
}
$('#theme')?.addEventListener('submit', e => { e.preventDefault(); flip(); });

// Picking bays.
const picks = () => $$('[name=node]:checked');
function picked() { if ($('#picked')) $('#picked').value = picks().length; }
document.addEventListener('change', e => { if (e.target.name === 'node') picked(); });
document.addEventListener('reset', () => setTimeout(picked));
document.addEventListener('click', e => {
  const button = e.target.closest?.('#selecting');
  if (!button) return;
  const on = !(button.getAttribute('aria-pressed') === 'true');
  $$('.encl').forEach(box => box.toggleAttribute('data-selecting', on));
  button.setAttribute('aria-pressed', on);
});
picked();

// Keys: arrows walk the bays as they sit in the rack; x picks; s switches; g then o or s goes; t theme; Esc clears.
const GO = { o: '/', s: '/switch' };
let going = false;
document.addEventListener('keydown', e => {
  if (e.target.matches('input:not([type=checkbox]):not([type=radio]), select, textarea') || e.ctrlKey || e.metaKey || e.altKey) return;
  const links = $$('.encl .bay'), at = links.indexOf(e.target.closest?.('.bay'));
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 8, ArrowUp: -8 }[e.key];
  if (at >= 0 && step) { $('a.bay-link', links[at + step] ?? links[at])?.focus(); e.preventDefault(); return; }
  if (at >= 0 && e.key === 'x') { $('[name=node]', links[at])?.click(); return; }
  if (going && GO[e.key]) { location.href = GO[e.key]; return; }
  if (e.key === 's' && picks().length) $('#switch-picked')?.click();
  going = e.key === 'g';
  if (e.key === 't') flip();
  if (e.key === '?') $('#keys')?.toggleAttribute('open');
  if (e.key === 'Escape') $('form#pick')?.reset();
});

// Live parts: one stream a page; each patch is an id and the HTML that takes its place. What the person has
// picked, opened or focused there stays so.
const KEEP = 'a, button, input, summary, [tabindex]';
function patch(id, html) {
  const old = document.getElementById(id), box = document.createElement('template');
  if (!old) return;
  box.innerHTML = html;
  const now = box.content.firstElementChild;
  if (!now || now.isEqualNode(old)) return;
  const focus = $$(KEEP, old).indexOf(document.activeElement);
  const ticks = $$('[name=node]:checked', old).map(tick => tick.value);
  const open = $$('details', old).map(fold => fold.open);
  const pressed = $('#selecting', old)?.getAttribute('aria-pressed');
  if (old.dataset.phase !== now.dataset.phase) now.classList.add('fresh');
  old.replaceWith(now);
  $$('[name=node]:enabled', now).forEach(tick => { tick.checked = ticks.includes(tick.value); });
  $$('details', now).forEach((fold, at) => { fold.open = open[at] ?? false; });
  if (pressed) $('#selecting', now)?.setAttribute('aria-pressed', pressed);
  if (focus >= 0) $$(KEEP, now)[focus]?.focus({ preventScroll: true });
  picked();
}
const source = document.body.dataset.live && new EventSource(document.body.dataset.live);
let last = '', silence;
function lost() {
  $('#live').hidden = true;
  $('#lost').hidden = !last;
  $('#asof').textContent = last;
  // Refused for good: the session has ended, or the server was started again and knows it no more.
  const over = source.readyState === EventSource.CLOSED;
  $('#again').hidden = over;
  $('#reload').hidden = !over;
}
if (source) {
  source.addEventListener('patch', e => {
    const cut = e.data.indexOf('\n');
    patch(e.data.slice(0, cut), e.data.slice(cut + 1));
  });
  source.addEventListener('beat', e => {
    last = e.data;
    $('#beat').textContent = last;
    $('#live').hidden = false;
    $('#lost').hidden = true;
    clearTimeout(silence);
    silence = setTimeout(lost, 25000);
  });
  source.addEventListener('error', lost);
  addEventListener('pagehide', () => source.close());
}
