// A tool loop with LangChain's agent. Arguments are those of loop.mjs.
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, tool } from 'langchain';
import * as loop from './loop.mjs';

await loop.main(async ({ baseURL, api, stream, prompt }) => {
  const { run, parameters, ...definition } = loop.tool;
  const model = new ChatOpenAI({
    model: loop.models[api],
    apiKey: 'sk-test',
    configuration: { baseURL },
    useResponsesApi: api === 'responses',
    zdrEnabled: api === 'responses', // keeps nothing at the server: store is false, and reasoning comes encrypted
  });
  const agent = createAgent({
    model,
    tools: [tool(run, { ...definition, schema: parameters })],
    systemPrompt: loop.instructions,
  });
  const input = { messages: [{ role: 'user', content: prompt }] };
  const options = { recursionLimit: 2 * loop.maxTurns };
  if (!stream) return (await agent.invoke(input, options)).messages.at(-1).text;
  // The mode "messages" makes the model stream. Its setting "streaming" does so, too, but then it downloads a vocabulary to
  // count what it sent.
  let state;
  for await (const [mode, chunk] of await agent.stream(input, { ...options, streamMode: ['messages', 'values'] })) {
    if (mode === 'values') state = chunk;
  }
  return state.messages.at(-1).text;
});
