// A tool loop with OpenAI's agents SDK. Arguments are those of loop.mjs.
import { Agent, run, setOpenAIAPI, setTracingDisabled, tool } from '@openai/agents';
import * as loop from './loop.mjs';

await loop.main(async ({ baseURL, api, stream, prompt }) => {
  setTracingDisabled(true);
  Object.assign(process.env, { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: 'sk-test' });
  setOpenAIAPI(api === 'chat' ? 'chat_completions' : 'responses');
  const { run: execute, ...definition } = loop.tool;
  const agent = new Agent({
    name: 'counter',
    instructions: loop.instructions,
    model: loop.models[api],
    tools: [tool({ ...definition, execute })],
  });
  const result = await run(agent, prompt, { stream, maxTurns: loop.maxTurns });
  if (stream) await result.completed;
  return result.finalOutput;
});
