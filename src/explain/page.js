'use strict';
// Draws what the tables say: live bytes and their bound over the steps, and the buffers by address and lifetime.
const number = (bytes) => bytes === null ? 'dynamic' : bytes.toLocaleString('en-US') + ' B';
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

function place(explained) {
  // Buffers outside of the arena lie above it, each in the lowest gap that is free while it lives.
  let top = explained.planned_bytes;
  const placed = [];
  for (const buffer of explained.buffers) {
    const bytes = buffer.bytes === null ? 0 : buffer.bytes;
    let at = buffer.offset;
    if (at === null) {
      at = explained.planned_bytes;
      const meets = (other) => other.buffer.first <= buffer.last && buffer.first <= other.buffer.last;
      const others = placed.filter((o) => o.buffer.offset === null && meets(o)).sort((a, b) => a.at - b.at);
      for (const other of others) if (at < other.at + other.bytes && other.at < at + bytes) at = other.at + other.bytes;
    }
    placed.push({ buffer, at, bytes });
    top = Math.max(top, at + bytes);
  }
  return { placed, top: Math.max(top, 1) };
}

function fit(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth || 1000;
  canvas.style.height = height + 'px';
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  return { context, width, height };
}

function section(root, explained) {
  const steps = explained.memory_over_time;
  if (steps.length === 0) return;
  const chart = root.querySelector('.chart');
  const map = root.querySelector('.map');
  const detail = root.querySelector('.alive');
  const rows = root.querySelectorAll('.steps tr[data-step]');
  const { placed, top } = place(explained);
  const most = Math.max(1, ...steps.map((s) => Math.max(s.live_bytes, s.bound_bytes)));
  let picked = steps.reduce((best, s, i) => s.live_bytes > steps[best].live_bytes ? i : best, 0);
  let wanted = '';
  const named = (text) => wanted !== '' && text.toLowerCase().includes(wanted);

  function draw() {
    const a = fit(chart, 180);
    const wide = a.width / steps.length;
    const bar = (of, style) => {
      a.context.fillStyle = style;
      steps.forEach((s, i) => {
        const high = of(s) / most * (a.height - 4);
        a.context.fillRect(i * wide, a.height - high, Math.max(wide - (wide > 4 ? 1 : 0), 0.5), high);
      });
    };
    bar((s) => s.live_bytes, colour('--live'));
    a.context.strokeStyle = colour('--bound');
    a.context.lineWidth = 2;
    a.context.beginPath();
    steps.forEach((s, i) => {
      const y = a.height - 1 - s.bound_bytes / most * (a.height - 4);
      a.context.lineTo(i * wide, y);
      a.context.lineTo((i + 1) * wide, y);
    });
    a.context.stroke();
    const b = fit(map, 320);
    for (const { buffer, at, bytes } of placed) {
      const isAlive = buffer.first <= picked && picked <= buffer.last;
      b.context.globalAlpha = isAlive ? 0.95 : 0.45;
      b.context.fillStyle = named(buffer.name) ? '#e0a800' : colour(isAlive ? '--pick' : '--live');
      const high = Math.max(bytes / top * b.height, 1);
      const y = b.height - at / top * b.height - high;
      const x = buffer.first * wide;
      b.context.fillRect(x, y, Math.max((buffer.last - buffer.first + 1) * wide - 0.5, 0.5), Math.max(high - 0.5, 0.5));
    }
    b.context.globalAlpha = 1;
    for (const { context, height } of [a, b]) {
      context.strokeStyle = colour('--pick');
      context.strokeRect(picked * wide, 0, Math.max(wide, 1), height);
    }
  }

  function pick(step) {
    picked = Math.min(Math.max(step, 0), steps.length - 1);
    const s = steps[picked];
    const alive = explained.buffers.filter((b) => b.first <= picked && picked <= b.last);
    alive.sort((x, y) => (y.bytes || 0) - (x.bytes || 0));
    detail.replaceChildren();
    const line = (tag, text) => detail.appendChild(Object.assign(document.createElement(tag), { textContent: text }));
    line('h4', `Step ${picked}: ${s.name}${s.location ? ' at ' + s.location : ''}`);
    line('p', `${number(s.live_bytes)} alive, at least ${number(s.bound_bytes)}`);
    const list = line('ol', '');
    for (const b of alive) {
      const where = b.offset === null ? b.kind : `${b.kind} at offset ${b.offset}`;
      const text = `${number(b.bytes)} ${b.name} (${where}, steps ${b.first} to ${b.last})`;
      list.appendChild(Object.assign(document.createElement('li'), { textContent: text }));
    }
    rows.forEach((row) => row.classList.toggle('pick', Number(row.dataset.step) === picked));
    draw();
  }

  for (const canvas of [chart, map]) {
    canvas.addEventListener('click', (event) => {
      const box = canvas.getBoundingClientRect();
      pick(Math.floor((event.clientX - box.left) / box.width * steps.length));
    });
  }
  rows.forEach((row) => row.addEventListener('click', () => pick(Number(row.dataset.step))));
  root.querySelector('.search').addEventListener('input', (event) => {
    wanted = event.target.value.trim().toLowerCase();
    for (const row of root.querySelectorAll('tbody tr')) {
      const isHit = wanted === '' || row.textContent.toLowerCase().includes(wanted);
      row.classList.toggle('off', !isHit);
      if (isHit && wanted !== '') for (let up = row; up; up = up.parentElement) if (up.tagName === 'DETAILS') up.open = true;
    }
    draw();
  });
  window.addEventListener('resize', draw);
  pick(picked);
}

const start = performance.now();
const explained = JSON.parse(document.getElementById('data').textContent).variants;
document.querySelectorAll('section').forEach((root, i) => section(root, explained[i]));
document.body.dataset.drawnMs = (performance.now() - start).toFixed(1);
