// Goal: through this framework, too, an effect needs a license, and one license has one effect.
// Method: the real package with its scripted model, and the scenarios that all frameworks share.
import { frameworkTests } from './scenarios.ts';

frameworkTests('loop');
