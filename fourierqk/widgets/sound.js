// ---------------------------------------------------------------- sound
// A widget's signal to be heard. A score is {beats?, ticks?, left?, right?}, each a number a token: beats and ticks are
// struck, high and low; left and right are tones, which rise with the number and are as loud as it is large. What comes
// of the past is written for the left ear, what comes of the future for the right.
const RATE = 22050, LOW = 196, HIGH = 392; // samples a second, hertz of the least and of the largest number
const strikes = { beats: { hertz: 1320, loud: 0.35 }, ticks: { hertz: 440, loud: 0.25 } };

const pace = (tokens) => Math.max(0.03, Math.min(0.14, 12 / tokens)); // seconds a token: a short line is slow enough to follow

// Both ears, as samples from -1 to 1.
function waves(score) {
  const lines = Object.values(score), tokens = Math.max(1, ...lines.map((line) => line.length)), each = pace(tokens) * RATE;
  const ears = [0, 1].map(() => new Float32Array(Math.ceil(tokens * each)));
  const largest = (...several) => Math.max(1e-12, ...several.flatMap((line) => Array.from(line || [], Math.abs)));
  const most = largest(score.left, score.right);
  [score.left, score.right].forEach((line, ear) => {
    let turn = 0;
    for (let i = 0; line && i < ears[ear].length; i++) {
      const u = Math.max(0, i / each - 0.5), t = Math.floor(u), at = (k) => (line[k] || 0) / most;
      const v = at(t) + (u - t) * (at(t + 1) - at(t)); // from the middle of a token to that of the next
      turn += (2 * Math.PI * LOW * (HIGH / LOW) ** ((v + 1) / 2)) / RATE;
      ears[ear][i] = 0.4 * Math.abs(v) * Math.sin(turn);
    }
  });
  for (const [kind, { hertz, loud }] of Object.entries(strikes)) {
    const line = score[kind] || [], top = largest(line);
    line.forEach((v, t) => {
      for (let i = 0; v && i < 0.03 * RATE; i++) {
        const at = Math.round(t * each) + i, sample = loud * (v / top) * Math.exp(-i / 150) * Math.sin((2 * Math.PI * hertz * i) / RATE);
        for (const ear of ears) if (at < ear.length) ear[at] += sample;
      }
    });
  }
  return ears;
}

// A button that plays, and stops; silent until it is pressed. `hear` is {said: what is heard, score(): of the state now}.
let speaker = null; // one for all widgets of a page, made at the first press: browsers allow none before
function player({ said, score }) {
  let playing = null;
  const show = () => { listen.textContent = playing ? "Stop" : "Listen"; };
  const stop = () => {
    if (!playing) return;
    playing.onended = null;
    playing.stop();
    playing = null;
    show();
  };
  const listen = button("Listen", () => {
    if (playing) return stop();
    speaker ||= new AudioContext();
    speaker.resume();
    const ears = waves(score()), buffer = speaker.createBuffer(2, ears[0].length, RATE);
    ears.forEach((ear, i) => buffer.copyToChannel(ear, i));
    playing = speaker.createBufferSource();
    playing.buffer = buffer;
    playing.connect(speaker.destination);
    playing.onended = () => { playing = null; show(); };
    playing.start();
    show();
  });
  return { nodes: [listen, element("span", { className: "fqk-note" }, said)], stop };
}
