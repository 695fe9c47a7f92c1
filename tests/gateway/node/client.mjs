// The `openai` SDK for Node, as its users use it. argv: base URL, key; stdin: {how, body}.
import OpenAI from "openai";

const [, , baseURL, apiKey] = process.argv;
const pieces = [];
for await (const piece of process.stdin) pieces.push(piece);
const { how, body } = JSON.parse(Buffer.concat(pieces).toString());
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });

const ways = {
  async plain() {
    const answer = await client.chat.completions.create(body);
    return { id: answer.id, message: answer.choices[0].message, usage: answer.usage };
  },
  async stream() {
    const stream = await client.chat.completions.create({
      ...body, stream: true, stream_options: { include_usage: true },
    });
    let text = "", usage = null, id = null;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? "";
      usage = chunk.usage ?? usage;
      id = chunk.id;
    }
    return { id, text, usage };
  },
  async helper() {
    const answer = await client.chat.completions.stream(body).finalChatCompletion();
    return { id: answer.id, message: answer.choices[0].message };
  },
  async models() {
    const names = [];
    for await (const model of client.models.list()) names.push(model.id);
    return names;
  },
};

let said;
try {
  said = await ways[how]();
} catch (error) {
  const header = error.headers?.get?.("retry-after") ?? null;
  said = {
    error: error.constructor.name, status: error.status ?? null, code: error.code ?? null,
    retryAfter: header, message: error.message,
  };
}
console.log(JSON.stringify(said));
