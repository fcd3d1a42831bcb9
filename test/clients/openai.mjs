// A tool loop with OpenAI's own SDK. The chat API has one in the SDK; for the responses API it is written out, as OpenAI's
// guide does. Arguments are those of loop.mjs.
import OpenAI from 'openai';
import { instructions, main, maxTurns, models, tool } from './loop.mjs';

function chat(client, { stream, prompt }) {
  const { run, ...definition } = tool;
  const request = {
    model: models.chat,
    stream,
    messages: [
      { role: 'system', content: instructions },
      { role: 'user', content: prompt },
    ],
    tools: [{ type: 'function', function: { ...definition, parse: JSON.parse, function: run } }],
  };
  return client.chat.completions.runTools(request, { maxChatCompletions: maxTurns }).finalContent();
}

// responses keeps nothing at the server: the whole history is sent with every request.
async function responses(client, { stream, prompt }) {
  const { run, ...definition } = tool;
  const input = [{ role: 'user', content: prompt }];
  for (let turn = 0; turn < maxTurns; turn++) {
    const request = {
      model: models.responses,
      instructions,
      input,
      tools: [{ type: 'function', strict: true, ...definition }],
      store: false,
      include: ['reasoning.encrypted_content'],
    };
    const response = stream
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request);
    const calls = response.output.filter((item) => item.type === 'function_call');
    if (calls.length === 0) return response.output_text;
    // The streaming helper adds parsed_arguments, which is no part of the API.
    input.push(...response.output.map(({ parsed_arguments, ...item }) => item));
    for (const call of calls) {
      input.push({ type: 'function_call_output', call_id: call.call_id, output: run(JSON.parse(call.arguments)) });
    }
  }
  throw new Error('the loop has no end');
}

await main((options) => {
  const client = new OpenAI({ baseURL: options.baseURL, apiKey: 'sk-test' });
  return options.api === 'chat' ? chat(client, options) : responses(client, options);
});
