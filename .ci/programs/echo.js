// Echoes, or sends random bytes on connections at once and compares what comes back: echo.js server|client PORT [CONNECTIONS]
const net = require("net"), { randomBytes } = require("crypto");
const [role, port, connections] = process.argv.slice(2);

function ask() {
  const sent = randomBytes(262144), came = [];
  const socket = net.connect(port, "127.0.0.1", () => socket.end(sent));
  socket.on("data", (bytes) => came.push(bytes));
  socket.on("close", () => {
    if (!Buffer.concat(came).equals(sent)) throw new Error("other bytes");
  });
}

if (role === "server") {
  net.createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)).listen(port, "127.0.0.1");
} else {
  for (let made = 0; made < connections; made++) ask();
}
